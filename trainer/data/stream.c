/* A question a part: its first step; an answer: a header with labels, and the samples in the order of their
 * use. */
#include "trainer/data/stream.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "trainer/data/part.h"
#include "trainer/in_step/patience.h"
#include "trainer/training.h"

#define NO_MORE UINT64_MAX /* in place of a step */

enum { TAG_QUESTION = 130, TAG_PART, TAG_HEAD };

struct header {
        uint64_t step, samples, hash;
};

struct outgoing {
        uint8_t *head, *values;
        MPI_Request sending[2];
};

struct stream_to {
        int rank;
        size_t worker, steps;
        uint64_t question, sent; /* samples of the steps before `sent` */
        bool ended;
        struct outgoing parts[STREAM_AHEAD];
        size_t part; /* that is packed next */
};

/* Of a sample without its label. */
static size_t value_bytes(const struct training *t)
{
        return part_sample_bytes(t->data) - part_label_bytes(t->data);
}

static size_t head_bytes(const struct training *t, size_t samples)
{
        return sizeof(struct header) + samples * part_label_bytes(t->data);
}

static size_t step_samples(const struct training *t, size_t worker)
{
        return training_largest(t, t->shares.of[worker]);
}

/* Steps of a part for who uses so many samples in each. */
static size_t part_steps(const struct training *t, size_t samples)
{
        size_t steps = STREAM_PART_BYTES / (samples * part_sample_bytes(t->data));

        return steps > 0 ? steps : 1;
}

/* The step after the last one of a part: it ends with its epoch, in which the samples' number stays. */
static uint64_t part_end(const struct training *t, uint64_t step, size_t steps)
{
        uint64_t epoch, end;
        size_t epoch_step, left;

        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        left = sampler_steps(t->sampler, epoch) - epoch_step;
        end = step + (left < steps ? left : steps);
        return end < t->last_step ? end : t->last_step;
}

static bool takes_samples(const struct training *t, int rank)
{
        if (t->shares.pipelines != NULL && !pipelines_takes_samples(t->shares.pipelines, rank))
                return false;
        return rank > 0 && shares_computes(&t->shares, rank) &&
               step_samples(t, shares_worker(&t->shares, rank)) > 0;
}

static int open_to(struct training *t, int rank, struct stream_to *to, struct err *err)
{
        size_t worker = shares_worker(&t->shares, rank), samples = step_samples(t, worker);
        size_t all = part_steps(t, samples) * samples, bytes = all * part_sample_bytes(t->data);

        *to = (struct stream_to){
                .rank = rank, .worker = worker, .steps = part_steps(t, samples), .sent = t->step
        };
        if (bytes > INT_MAX)
                return err_set(
                        err, -EINVAL,
                        "--distribute manager: a step of rank %d has %zu samples, which are %zu bytes: "
                        "take a batch of which it gets less than 2 GB",
                        rank, samples, bytes);
        for (size_t i = 0; i < STREAM_AHEAD; i++) {
                to->parts[i] = (struct outgoing){ .head = calloc(1, head_bytes(t, all)),
                                                  .values = malloc(all * value_bytes(t)),
                                                  .sending = { MPI_REQUEST_NULL, MPI_REQUEST_NULL } };
                if (to->parts[i].head == NULL || to->parts[i].values == NULL)
                        return err_set(err, -ENOMEM, "no memory for a part of %zu bytes", bytes);
        }
        return 0;
}

static void expect(struct training *t, size_t i, MPI_Request *questions)
{
        struct stream_to *to = &t->stream.to[i];

        MPI_Irecv(&to->question, 1, MPI_UINT64_T, to->rank, TAG_QUESTION, MPI_COMM_WORLD, &questions[i]);
}

static int open_manager(struct training *t, struct err *err)
{
        struct stream *s = &t->stream;

        s->to = calloc((size_t) t->world.size, sizeof(*s->to));
        s->questions = calloc((size_t) t->world.size, sizeof(*s->questions));
        if (s->to == NULL || s->questions == NULL)
                return err_set(err, -ENOMEM, "no memory for %d workers", t->world.size);
        for (int rank = 1; rank < t->world.size; rank++)
                if (takes_samples(t, rank) && open_to(t, rank, &s->to[s->to_count++], err) < 0)
                        return err->code;
        for (size_t i = 0; i < s->to_count; i++)
                expect(t, i, s->questions);
        return 0;
}

static int open_worker(struct training *t, struct err *err)
{
        struct stream *s = &t->stream;

        *s = (struct stream){ .gets = true,
                              .ready = t->step,
                              .asked = t->step,
                              .step_samples = step_samples(t, shares_worker(&t->shares, t->world.rank)) };
        s->steps = part_steps(t, s->step_samples);
        for (size_t i = 0; i < STREAM_SLOTS; i++) {
                s->slots[i].head = calloc(1, head_bytes(t, s->steps * s->step_samples));
                if (s->slots[i].head == NULL)
                        return err_set(err, -ENOMEM, "no memory for a part of %zu samples",
                                       s->steps * s->step_samples);
        }
        return part_open(t->data, STREAM_SLOTS * s->steps * s->step_samples, err);
}

int stream_open(struct training *t, struct err *err)
{
        if (!t->world.parallel || strcmp(t->options->distribute, "manager") != 0 ||
            train_options_owned(t->options) || t->options->measure)
                return 0;
        if (t->world.rank == 0)
                return open_manager(t, err);
        return takes_samples(t, t->world.rank) ? open_worker(t, err) : 0;
}

void stream_close(struct training *t)
{
        struct stream *s = &t->stream;

        for (size_t i = 0; i < s->to_count; i++)
                for (size_t k = 0; k < STREAM_AHEAD; k++) {
                        free(s->to[i].parts[k].head);
                        free(s->to[i].parts[k].values);
                }
        free(s->to);
        free(s->questions);
        for (size_t i = 0; i < STREAM_SLOTS; i++)
                free(s->slots[i].head);
}

/* The samples of a step, in the order of their use, behind `total` others. Return: their number, or a
 * negative errno. */
static int pack_step(struct training *t, const struct stream_to *to, uint64_t step, size_t total,
                     struct err *err)
{
        const struct outgoing *part = &to->parts[to->part];
        size_t each = value_bytes(t), label = part_label_bytes(t->data), epoch_step;
        uint8_t *values = part->values + total * each,
                *labels = part->head + sizeof(struct header) + total * label;
        uint64_t epoch;
        int count;

        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        count = sampler_chunk(t->sampler, epoch, epoch_step, to->worker, t->ids);
        if (count < 0)
                return err_set(err, -ENOMEM, "no memory for the samples of epoch %llu",
                               (unsigned long long) epoch);
        for (size_t i = 0; i < (size_t) count; i++) {
                if (i + DATASET_FETCH_AHEAD < (size_t) count)
                        dataset_touch(t->data, t->ids[i + DATASET_FETCH_AHEAD]);
                if (part_get_apart(t->data, t->ids[i], values + i * each, labels + i * label, err) < 0)
                        return err->code;
        }
        return count;
}

/* Return: the samples of a part, or a negative errno. */
static int64_t pack(struct training *t, const struct stream_to *to, uint64_t end, struct err *err)
{
        size_t total = 0;

        for (uint64_t step = to->question; step < end; step++) {
                int count = pack_step(t, to, step, total, err);

                if (count < 0)
                        return count;
                total += (size_t) count;
        }
        return (int64_t) total;
}

/* Of the samples and their labels: a hash in the middle of gathering would keep the processor from fetching
 * the next samples meanwhile. */
static uint64_t hash_part(const struct training *t, const uint8_t *head, const uint8_t *values,
                          size_t samples)
{
        uint64_t hash = hash_bytes(values, samples * value_bytes(t), 0);

        return hash_bytes(head + sizeof(struct header), samples * part_label_bytes(t->data), hash);
}

static int answer(struct training *t, size_t i, struct err *err)
{
        struct stream_to *to = &t->stream.to[i];
        struct outgoing *part = &to->parts[to->part];
        struct header h = { .step = to->question };
        int64_t count;

        to->ended = to->question == NO_MORE;
        if (to->ended)
                return 0;
        if (to->question != to->sent || to->sent >= t->last_step)
                return err_set(err, -EIO, "rank %d asks for the samples of step %llu, step %llu is next",
                               to->rank, (unsigned long long) to->question, (unsigned long long) to->sent);
        /* who asks has had the part that was in its place */
        MPI_Waitall(2, part->sending, MPI_STATUSES_IGNORE);
        to->sent = part_end(t, to->question, to->steps);
        count = pack(t, to, to->sent, err);
        if (count < 0)
                return (int) count;
        h.samples = (uint64_t) count;
        h.hash = hash_part(t, part->head, part->values, h.samples);
        memcpy(part->head, &h, sizeof(h));
        MPI_Isend(part->head, (int) head_bytes(t, h.samples), MPI_BYTE, to->rank, TAG_HEAD, MPI_COMM_WORLD,
                  &part->sending[0]);
        MPI_Isend(part->values, (int) (h.samples * value_bytes(t)), MPI_BYTE, to->rank, TAG_PART,
                  MPI_COMM_WORLD, &part->sending[1]);
        to->part = (to->part + 1) % STREAM_AHEAD;
        t->distribution.sent_bytes += h.samples * part_sample_bytes(t->data);
        expect(t, i, t->stream.questions);
        return 0;
}

/* Answers those who have asked. */
static int look(struct training *t, struct err *err)
{
        struct stream *s = &t->stream;
        int index = 0, there = 1;

        while (s->to_count > 0) {
                MPI_Testany((int) s->to_count, s->questions, &index, &there, MPI_STATUS_IGNORE);
                if (!there || index == MPI_UNDEFINED)
                        break;
                if (answer(t, (size_t) index, err) < 0)
                        return err->code;
        }
        return 0;
}

/* Does anybody not have that step's samples yet? */
static bool lacks(const struct stream *s, uint64_t step)
{
        for (size_t i = 0; i < s->to_count; i++)
                if (!s->to[i].ended && s->to[i].sent <= step)
                        return true;
        return false;
}

int stream_serve(struct training *t, uint64_t step, struct err *err)
{
        struct stream *s = &t->stream;
        int r = look(t, err);

        while (r == 0 && lacks(s, step))
                r = answer(t, (size_t) patience_any(s->questions, (int) s->to_count), err);
        return r;
}

int stream_any(struct training *t, MPI_Request *requests, int count, struct err *err)
{
        uint64_t begin = record_now();
        int index = -1;

        while (index == -1) {
                if (look(t, err) < 0)
                        return err->code;
                index = patience_look(requests, count, begin);
        }
        return index;
}

/* The first of a slot's places. */
static size_t first_place(const struct stream *s, size_t slot)
{
        return slot * s->steps * s->step_samples;
}

/* What came is known by its samples' numbers. */
static int unpack(struct training *t, struct err *err)
{
        struct stream *s = &t->stream;
        struct stream_slot *slot = &s->slots[s->slot];
        size_t place = first_place(s, s->slot), total = 0, label = part_label_bytes(t->data);
        struct header h;

        memcpy(&h, slot->head, sizeof(h));
        if (h.step != s->ready || h.samples > s->steps * s->step_samples ||
            hash_part(t, slot->head, part_values(t->data, place), h.samples) != h.hash)
                return err_set(err, -EIO, "the samples from step %llu on came damaged",
                               (unsigned long long) s->ready);
        for (uint64_t step = s->ready; step < slot->end; step++) {
                uint64_t epoch;
                size_t epoch_step, count;

                sampler_locate(t->sampler, step, &epoch, &epoch_step);
                count = sampler_count(t->sampler, epoch, epoch_step,
                                      shares_worker(&t->shares, t->world.rank));
                if (total + count > h.samples)
                        break;
                if (sampler_chunk(t->sampler, epoch, epoch_step, shares_worker(&t->shares, t->world.rank),
                                  t->ids) < 0)
                        return err_set(err, -ENOMEM, "no memory for the sample order");
                for (size_t i = 0; i < count; i++, total++)
                        part_name(t->data, place + total, t->ids[i], slot->head + sizeof(h) + total * label);
        }
        if (total != h.samples)
                return err_set(err, -EIO, "the manager sent %llu samples from step %llu on, others are due",
                               (unsigned long long) h.samples, (unsigned long long) s->ready);
        t->distribution.received_bytes += total * part_sample_bytes(t->data);
        s->ready = slot->end;
        s->slot = (s->slot + 1) % STREAM_SLOTS;
        s->coming--;
        return 0;
}

/* May the next part be asked for? Its slot's steps are done, and its epoch's samples are known; and the last
 * part but one has come, so that the manager has room for it without waiting for anybody. */
static bool may_ask(const struct training *t)
{
        const struct stream *s = &t->stream;

        return s->coming < STREAM_AHEAD && s->asked < t->last_step &&
               s->slots[(s->slot + s->coming) % STREAM_SLOTS].end <= t->step &&
               distribution_known(t, s->asked);
}

/* The samples come to lie in their slot, whose steps are done. */
static void ask(struct training *t)
{
        struct stream *s = &t->stream;
        size_t samples = s->steps * s->step_samples, next = (s->slot + s->coming) % STREAM_SLOTS;
        struct stream_slot *slot = &s->slots[next];

        slot->question = s->asked;
        slot->end = s->asked = part_end(t, s->asked, s->steps);
        MPI_Irecv(slot->head, (int) head_bytes(t, samples), MPI_BYTE, 0, TAG_HEAD, MPI_COMM_WORLD,
                  &slot->requests[0]);
        MPI_Irecv(part_values(t->data, first_place(s, next)), (int) (samples * value_bytes(t)), MPI_BYTE, 0,
                  TAG_PART, MPI_COMM_WORLD, &slot->requests[1]);
        MPI_Isend(&slot->question, 1, MPI_UINT64_T, 0, TAG_QUESTION, MPI_COMM_WORLD, &slot->requests[2]);
        s->coming++;
}

bool stream_has(const struct training *t, uint64_t step)
{
        return !t->stream.gets || step < t->stream.ready;
}

int stream_wait(struct training *t, uint64_t step, struct err *err)
{
        struct stream *s = &t->stream;
        uint64_t begin = record_now(), usec;
        bool waits = !stream_has(t, step);
        int there;

        for (;;) {
                while (s->gets && may_ask(t))
                        ask(t);
                there = 0;
                if (s->coming > 0 && !stream_has(t, step)) {
                        patience_wait(s->slots[s->slot].requests, 3);
                        there = 1;
                } else if (s->coming > 0) {
                        MPI_Testall(3, s->slots[s->slot].requests, &there, MPI_STATUSES_IGNORE);
                }
                if (!there)
                        break;
                if (unpack(t, err) < 0)
                        return err->code;
        }
        if (waits) {
                usec = record_done(&t->record, RECORD_LOAD, step, begin) - begin;
                t->record.load_waited_usec += usec;
        }
        return 0;
}

int stream_end(struct training *t, struct err *err)
{
        const uint64_t no_more = NO_MORE;
        struct stream *s = &t->stream;
        int r = 0;

        if (s->gets) {
                for (; s->coming > 0; s->coming--, s->slot = (s->slot + 1) % STREAM_SLOTS)
                        patience_wait(s->slots[s->slot].requests, 3);
                MPI_Send(&no_more, 1, MPI_UINT64_T, 0, TAG_QUESTION, MPI_COMM_WORLD);
        }
        for (size_t i = 0; r == 0 && i < s->to_count; i++)
                while (r == 0 && !s->to[i].ended) {
                        patience_wait(&s->questions[i], 1);
                        r = answer(t, i, err);
                }
        for (size_t i = 0; r == 0 && i < s->to_count; i++)
                for (size_t k = 0; k < STREAM_AHEAD; k++)
                        MPI_Waitall(2, s->to[i].parts[k].sending, MPI_STATUSES_IGNORE);
        return r;
}
