/* What rank 0 sends before an epoch and the others wait for; how an earlier run's new files join again. */
#include "trainer/data/distribution.h"

#include <assert.h>
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "trainer/data/joined.h"
#include "trainer/training.h"

enum { TAG_EPOCH = 100, TAG_NEED, TAG_HEADER, TAG_DATA };

struct header {
        uint64_t samples;    /* of the whole training data from this epoch on */
        uint64_t bytes, crc; /* of the shard that follows */
};

static bool manages(const struct training *t)
{
        return strcmp(t->options->distribute, "manager") == 0;
}

/* Does this rank get samples? Otherwise it is another server or a stage between the first and the last, which
 * is told how many there are. */
static bool takes_samples(const struct training *t, int rank)
{
        return t->shares.whole ? rank + 1 == t->world.size : shares_computes(&t->shares, rank);
}

static bool is_sent_epochs(const struct training *t, int rank)
{
        return rank == 0 || t->options->poll > 0 || takes_samples(t, rank);
}

struct facts {
        uint64_t train, test, height, width, channels, classes;
        float value[256];
};

static void describe(const struct dataset *d, struct facts *f)
{
        *f = (struct facts){ dataset_count(d, DATASET_TRAIN),
                             dataset_count(d, DATASET_TEST),
                             d->size.input.height,
                             d->size.input.width,
                             d->size.input.channels,
                             d->size.classes,
                             { 0 } };
        memcpy(f->value, d->value, sizeof(f->value));
}

/* A data set whose samples are elsewhere until they come. */
static struct dataset *remote(const struct facts *f, const struct preprocess_steps *p, uint64_t seed)
{
        struct dataset *d = calloc(1, sizeof(*d));

        if (d == NULL)
                return NULL;
        d->preprocess = *p;
        d->seed = seed;
        d->splits[DATASET_TRAIN].count = f->train;
        d->splits[DATASET_TEST].count = f->test;
        d->size = (struct model_size){ { f->height, f->width, f->channels }, f->classes };
        memcpy(d->value, f->value, sizeof(d->value));
        return d;
}

void distribution_close(struct distribution *d)
{
        text_free(&d->joined);
        seen_free(&d->later);
}

int distribution_open(struct training *t, const struct preprocess_steps *p, struct err *err)
{
        const struct train_options *o = t->options;
        struct facts facts = { 0 };
        int r = 0;

        if (t->world.rank == 0) {
                r = dataset_open(o->data, strcmp(o->model, "text") == 0, p, o->seed, &t->distribution.later,
                                 &t->data, err);
                if (r == 0)
                        describe(t->data, &facts);
        }
        r = world_agree(&t->world, r, err);
        if (r < 0 || !t->world.parallel)
                return r;
        MPI_Bcast(&facts, (int) sizeof(facts), MPI_BYTE, 0, MPI_COMM_WORLD);
        if (t->world.rank > 0)
                t->data = remote(&facts, p, o->seed);
        r = t->data != NULL ? 0 : err_set(err, -ENOMEM, "no memory for the data set");
        return world_agree(&t->world, r, err);
}

/* The samples of one worker in one epoch, in the order of their use. Return: their number, or -ENOMEM. */
static int64_t epoch_ids(struct training *t, uint64_t epoch, size_t worker, uint32_t **ret)
{
        uint32_t *ids = calloc(dataset_count(t->data, DATASET_TRAIN) + 1, sizeof(*ids));
        int64_t total = 0;

        for (size_t step = 0; ids != NULL && step < sampler_steps(t->sampler, epoch); step++) {
                int count = sampler_chunk(t->sampler, epoch, step, worker, ids + total);

                if (count < 0) {
                        free(ids);
                        return count;
                }
                total += count;
        }
        *ret = ids;
        return ids != NULL ? total : -ENOMEM;
}

static bool is_text(const struct training *t)
{
        return strcmp(t->options->model, "text") == 0;
}

/* Pixels and label, or the words of a text's sample. */
static size_t sample_bytes(const struct training *t)
{
        return is_text(t) ? DATASET_TEXT_SAMPLE * sizeof(uint32_t)
                          : shape_size(&t->data->size.input) + sizeof(int32_t);
}

static void pack(const struct training *t, uint32_t id, uint8_t *to)
{
        const struct dataset_samples *s = &t->data->splits[DATASET_TRAIN];
        size_t pixels = shape_size(&t->data->size.input);

        if (is_text(t)) {
                memcpy(to, s->tokens + id, sample_bytes(t));
                return;
        }
        memcpy(to, s->pixels + id * pixels, pixels);
        memcpy(to + pixels, &s->labels[id], sizeof(int32_t));
}

/* Tells a worker which epoch begins, and sends it the data if it says that it needs them. Return: the bytes
 * that went. */
static uint64_t hand_over(uint64_t epoch, int rank, uint64_t samples, const void *data, uint64_t bytes)
{
        struct header h = { samples, bytes, crc32_z(0, data, bytes) };
        int need = 0;

        MPI_Send(&epoch, 1, MPI_UINT64_T, rank, TAG_EPOCH, MPI_COMM_WORLD);
        MPI_Recv(&need, 1, MPI_INT, rank, TAG_NEED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!need)
                return 0;
        MPI_Send(&h, (int) sizeof(h), MPI_BYTE, rank, TAG_HEADER, MPI_COMM_WORLD);
        for (uint64_t done = 0; done < bytes; done += 1 << 30) {
                uint64_t some = bytes - done < 1 << 30 ? bytes - done : 1 << 30;

                MPI_Send((const char *) data + done, (int) some, MPI_BYTE, rank, TAG_DATA, MPI_COMM_WORLD);
        }
        return bytes;
}

static int send_shard(struct training *t, uint64_t epoch, size_t worker, int rank, struct err *err)
{
        CLEANUP(free_p) uint32_t *ids = NULL;
        int64_t count = epoch_ids(t, epoch, worker, &ids);
        size_t each = sample_bytes(t);
        CLEANUP(free_p) uint8_t *bytes = count >= 0 ? malloc((size_t) count * each + 1) : NULL;

        if (bytes == NULL)
                return err_set(err, -ENOMEM, "no memory for the shard of rank %d", rank);
        for (int64_t i = 0; i < count; i++)
                pack(t, ids[i], bytes + (size_t) i * each);
        t->distribution.sent_bytes +=
                hand_over(epoch, rank, dataset_count(t->data, DATASET_TRAIN), bytes, (uint64_t) count * each);
        return 0;
}

static int unpack_images(struct dataset_samples *s, const uint8_t *bytes, size_t pixels, size_t count,
                         struct err *err)
{
        if (dataset_grow(s, count + 1, pixels, err) < 0)
                return err->code;
        for (size_t i = 0; i < count; i++, bytes += pixels + sizeof(int32_t)) {
                memcpy(s->pixels + i * pixels, bytes, pixels);
                memcpy(&s->labels[i], bytes + pixels, sizeof(int32_t));
        }
        return 0;
}

static int unpack_text(struct dataset_samples *s, const uint8_t *bytes, size_t count)
{
        uint32_t *tokens = reallocarray(s->tokens, count + 1, DATASET_TEXT_SAMPLE * sizeof(*tokens));

        if (tokens == NULL)
                return -ENOMEM;
        s->tokens = tokens;
        memcpy(tokens, bytes, count * DATASET_TEXT_SAMPLE * sizeof(*tokens));
        return 0;
}

/* Puts the shard where dataset_load() finds it: sample number -> place. */
static int keep_shard(struct training *t, const uint8_t *bytes, const uint32_t *ids, size_t count,
                      struct err *err)
{
        struct dataset_samples *s = &t->data->splits[DATASET_TRAIN];
        uint32_t *places = reallocarray(t->data->places, s->count + 1, sizeof(*places));
        int r = -ENOMEM;

        if (places != NULL) {
                t->data->places = places;
                r = is_text(t) ? unpack_text(s, bytes, count)
                               : unpack_images(s, bytes, shape_size(&t->data->size.input), count, err);
        }
        if (r < 0)
                return err_set(err, r, "no memory for a shard of %zu samples", count);
        for (size_t i = 0; i < count; i++)
                places[ids[i]] = (uint32_t) i;
        return 0;
}

/* The training data have `samples` from this epoch on; before, they had `before`. */
static void note_growth(struct training *t, uint64_t epoch, uint64_t before, uint64_t samples,
                        struct err *err)
{
        if (samples == before)
                return;
        t->data->splits[DATASET_TRAIN].count = samples;
        if (sampler_grow(t->sampler, epoch, samples, err) < 0 || t->options->steps > 0)
                return;
        t->last_step = 0;
        for (uint64_t e = 0; e < t->options->epochs; e++)
                t->last_step += sampler_steps(t->sampler, e);
}

/* What the manager sends this worker. @ret_bytes: allocated, with a 0 behind them */
static int take_over(uint64_t epoch, struct header *ret, uint8_t **ret_bytes, struct err *err)
{
        CLEANUP(free_p) uint8_t *bytes = NULL;
        struct header h = { 0 };
        uint64_t sent;
        int need = 1;

        MPI_Recv(&sent, 1, MPI_UINT64_T, 0, TAG_EPOCH, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&need, 1, MPI_INT, 0, TAG_NEED, MPI_COMM_WORLD);
        MPI_Recv(&h, (int) sizeof(h), MPI_BYTE, 0, TAG_HEADER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        bytes = malloc(h.bytes + 1);
        if (bytes == NULL)
                return err_set(err, -ENOMEM, "no memory for a shard of %llu bytes",
                               (unsigned long long) h.bytes);
        if (sent != epoch)
                return err_set(err, -EIO,
                               "the manager sends the data of epoch %llu, those of epoch %llu are due",
                               (unsigned long long) sent, (unsigned long long) epoch);
        for (uint64_t done = 0; done < h.bytes; done += 1 << 30) {
                uint64_t some = h.bytes - done < 1 << 30 ? h.bytes - done : 1 << 30;

                MPI_Recv(bytes + done, (int) some, MPI_BYTE, 0, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (crc32_z(0, bytes, h.bytes) != h.crc)
                return err_set(err, -EIO, "the data of epoch %llu came damaged", (unsigned long long) epoch);
        bytes[h.bytes] = '\0';
        *ret = h;
        *ret_bytes = TAKE(bytes);
        return 0;
}

static int receive_shard(struct training *t, uint64_t epoch, size_t worker, struct err *err)
{
        CLEANUP(free_p) uint32_t *ids = NULL;
        CLEANUP(free_p) uint8_t *bytes = NULL;
        struct header h = { 0 };
        int64_t count;

        if (take_over(epoch, &h, &bytes, err) < 0)
                return err->code;
        assert(bytes != NULL);
        note_growth(t, epoch, dataset_count(t->data, DATASET_TRAIN), h.samples, err);
        count = epoch_ids(t, epoch, worker, &ids);
        if (count < 0)
                return err_set(err, -ENOMEM, "no memory for the samples of epoch %llu",
                               (unsigned long long) epoch);
        if (h.bytes != (uint64_t) count * sample_bytes(t))
                return err_set(err, -EIO, "the manager sends %llu bytes for epoch %llu, %lld samples are due",
                               (unsigned long long) h.bytes, (unsigned long long) epoch, (long long) count);
        t->distribution.received_bytes += h.bytes;
        return keep_shard(t, bytes, ids, (size_t) count, err);
}

/* Where every rank reads the data itself: the names of the files that join. */
static int receive_names(struct training *t, uint64_t epoch, struct err *err)
{
        CLEANUP(free_p) uint8_t *names = NULL;
        uint64_t before = dataset_count(t->data, DATASET_TRAIN);
        struct header h = { 0 };
        char *rest, *name;

        if (take_over(epoch, &h, &names, err) < 0)
                return err->code;
        rest = (char *) names;
        while ((name = strsep(&rest, "\n")) != NULL)
                if (name[0] != '\0' && dataset_join(t->data, t->options->data, name, err) < 0)
                        return err->code;
        if (dataset_count(t->data, DATASET_TRAIN) != h.samples)
                return err_set(err, -EINVAL,
                               "--poll: %zu samples here, %llu on rank 0: is it the same directory?",
                               dataset_count(t->data, DATASET_TRAIN), (unsigned long long) h.samples);
        note_growth(t, epoch, before, h.samples, err);
        return 0;
}

/* A rank without samples. */
static int receive_count(struct training *t, uint64_t epoch, struct err *err)
{
        CLEANUP(free_p) uint8_t *nothing = NULL;
        struct header h = { 0 };

        if (take_over(epoch, &h, &nothing, err) < 0)
                return err->code;
        note_growth(t, epoch, dataset_count(t->data, DATASET_TRAIN), h.samples, err);
        return 0;
}

int distribution_remember(struct training *t, struct err *err)
{
        const struct train_options *o = t->options;
        struct joined_line line;
        const char *at;
        int r = 0;

        if (o->checkpoint == NULL || !o->resume)
                return 0;
        if (t->world.rank == 0)
                r = joined_read(o->checkpoint, &t->distribution.joined, err);
        r = world_agree(&t->world, r, err);
        if (r < 0)
                return r;
        r = world_share(&t->world, &t->distribution.joined, err);
        if (r < 0)
                return r;
        at = t->distribution.joined.data;
        while (at != NULL && r == 0 && joined_next(&at, &line))
                r = seen_add(&t->distribution.later, line.name);
        return world_agree(&t->world, r < 0 ? err_set(err, r, "no memory for the files' names") : 0, err);
}

/* The file of one line, and of the lines after it that joined with it. */
static int join_again(struct training *t, const char **at, struct joined_line line, struct err *err)
{
        bool reads = t->world.rank == 0 || (!manages(t) && takes_samples(t, t->world.rank));
        uint64_t before = dataset_count(t->data, DATASET_TRAIN);
        struct joined_line more = line;
        const char *next = *at;
        int r = 0;

        do {
                *at = next;
                if (reads)
                        r = dataset_join(t->data, t->options->data, more.name, err);
                if (r == 0 && t->world.rank == 0 && seen_add(&t->data->seen, more.name) < 0)
                        r = err_set(err, -ENOMEM, "no memory for the files' names");
        } while (r == 0 && joined_next(&next, &more) && more.epoch == line.epoch);
        if (r < 0)
                return err_wrap(err, r == -ENOMEM ? r : -EINVAL,
                                "--resume: file '%s', which joined at epoch %llu, cannot be read again",
                                more.name, (unsigned long long) line.epoch);
        if (reads && dataset_count(t->data, DATASET_TRAIN) != line.samples)
                return err_set(err, -EINVAL,
                               "--resume: %zu samples with the files that joined by epoch %llu, there were "
                               "%llu: files have changed",
                               dataset_count(t->data, DATASET_TRAIN), (unsigned long long) line.epoch,
                               (unsigned long long) line.samples);
        note_growth(t, line.epoch, before, line.samples, err);
        return 0;
}

int distribution_resume(struct training *t, struct err *err)
{
        const char *at = t->distribution.joined.data;
        size_t bytes = t->distribution.joined.size_bytes;
        struct joined_line line;
        int r = 0;

        for (const char *next = at; r == 0 && at != NULL && joined_next(&next, &line);) {
                uint64_t first = 0;

                for (uint64_t e = 0; e < line.epoch && first < t->step; e++)
                        first += sampler_steps(t->sampler, e);
                if (first >= t->step) /* after the checkpoint: the file is found anew */
                        break;
                r = join_again(t, &next, line, err);
                at = next;
        }
        if (r < 0 || bytes == 0)
                return r;
        assert(at != NULL);
        t->distribution.joined.size_bytes = (size_t) (at - t->distribution.joined.data);
        t->distribution.joined.data[t->distribution.joined.size_bytes] = '\0';
        /* the list on disk keeps them until they join again: a run that is killed before must know them, too
         */
        if (t->world.rank == 0 && t->distribution.joined.size_bytes < bytes && t->options->poll == 0)
                (void) fprintf(stderr, "remuda-train: files that joined after this checkpoint are left out: "
                                       "--poll would look for them\n");
        return 0;
}

/* @names: of the files that join now, one a line */
static int remember(struct training *t, uint64_t epoch, const struct text *names, struct err *err)
{
        const char *at = names->data;

        if (t->options->checkpoint == NULL)
                return 0;
        for (size_t length; at != NULL && (length = strcspn(at, "\n")) > 0; at += length + 1)
                text_printf(&t->distribution.joined, "%llu %zu %.*s\n", (unsigned long long) epoch,
                            dataset_count(t->data, DATASET_TRAIN), (int) length, at);
        return joined_write(t->options->checkpoint, &t->distribution.joined, err);
}

/* @joined: gets the new files' names */
static int look_for_files(struct training *t, uint64_t epoch, struct text *joined, struct err *err)
{
        uint64_t now = record_now();
        size_t before = dataset_count(t->data, DATASET_TRAIN), added;

        if (t->options->poll == 0 || (epoch == 0 && t->step == 0) ||
            now - t->distribution.polled_usec < (uint64_t) t->options->poll * 1000000)
                return 0;
        t->distribution.polled_usec = now;
        added = dataset_poll(t->data, t->options->data, joined);
        if (added == 0)
                return 0;
        note_growth(t, epoch, before, before + added, err);
        (void) fprintf(stderr, "remuda-train: %zu samples of new files join at epoch %llu\n", added,
                       (unsigned long long) epoch);
        return remember(t, epoch, joined, err);
}

bool distribution_begun(const struct training *t, uint64_t step)
{
        uint64_t epoch;
        size_t epoch_step;

        if (!manages(t) && t->options->poll == 0)
                return true;
        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        return t->distribution.epochs_begun > epoch;
}

static int serve(struct training *t, uint64_t epoch, const struct text *joined, struct err *err)
{
        const char *names = joined->data != NULL ? joined->data : "";
        int r = joined->failed ? err_set(err, -ENOMEM, "no memory for the new files' names") : 0;

        for (int rank = 1; r == 0 && rank < t->world.size; rank++) {
                bool takes = takes_samples(t, rank);

                if (takes && manages(t))
                        r = send_shard(t, epoch, shares_worker(&t->shares, rank), rank, err);
                else if (is_sent_epochs(t, rank))
                        (void) hand_over(epoch, rank, dataset_count(t->data, DATASET_TRAIN), names,
                                         takes ? strlen(names) : 0);
        }
        return r;
}

static int receive(struct training *t, uint64_t epoch, struct err *err)
{
        if (!takes_samples(t, t->world.rank))
                return receive_count(t, epoch, err);
        return manages(t) ? receive_shard(t, epoch, shares_worker(&t->shares, t->world.rank), err)
                          : receive_names(t, epoch, err);
}

int distribution_epoch(struct training *t, uint64_t step, struct err *err)
{
        CLEANUP(text_free) struct text joined = { 0 };
        uint64_t epoch, begin = record_now();
        size_t epoch_step;
        int r = 0;

        if (distribution_begun(t, step) || step >= t->last_step)
                return 0;
        sampler_locate(t->sampler, step, &epoch, &epoch_step);
        if (t->world.rank == 0) {
                /* within an epoch the order of its samples stays */
                if (epoch_step == 0)
                        r = look_for_files(t, epoch, &joined, err);
                r = r < 0 ? r : serve(t, epoch, &joined, err);
        } else if (is_sent_epochs(t, t->world.rank)) {
                r = receive(t, epoch, err);
        }
        t->distribution.epochs_begun = epoch + 1;
        if (manages(t) && (t->world.rank == 0 || takes_samples(t, t->world.rank)))
                (void) record_done(&t->record, RECORD_LOAD, step, begin);
        return r;
}
