/* One message a step each way: sent when the samples are known, waited for a step later. */
#include "trainer/data/ring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/data/part.h"
#include "trainer/in_step/patience.h"
#include "trainer/training.h"

#define PIECE_BYTES ((size_t) 1 << 20)

enum { TAG_SHARD = 120, TAG_SAMPLES };

/* The manager sends a shard once, piece by piece; where it cannot read on, a piece is empty.
 * @piece: room for `most` samples */
static int send_shard(struct training *t, int rank, uint8_t *piece, size_t most, struct err *err)
{
        size_t each = part_sample_bytes(t->data), some;
        const uint32_t *ids;
        size_t count = owned_shard(sampler_owned(t->sampler), shares_worker(&t->shares, rank), &ids);
        int r = 0;

        for (size_t first = 0; r == 0 && first < count; first += some) {
                some = count - first < most ? count - first : most;
                for (size_t i = 0; r == 0 && i < some; i++)
                        r = part_get(t->data, ids[first + i], piece + i * each, err);
                MPI_Send(piece, r == 0 ? (int) (some * each) : 0, MPI_BYTE, rank, TAG_SHARD, MPI_COMM_WORLD);
                t->distribution.sent_bytes += r == 0 ? some * each : 0;
        }
        return r;
}

static int receive_shard(struct training *t, const uint32_t *ids, size_t count, uint8_t *piece, size_t most,
                         struct err *err)
{
        size_t each = part_sample_bytes(t->data), some;

        for (size_t first = 0; first < count; first += some) {
                MPI_Status status;
                int got;

                some = count - first < most ? count - first : most;
                MPI_Recv(piece, (int) (some * each), MPI_BYTE, 0, TAG_SHARD, MPI_COMM_WORLD, &status);
                MPI_Get_count(&status, MPI_BYTE, &got);
                if ((size_t) got != some * each)
                        return err_set(err, -EIO, "the manager sent %d bytes of a shard, %zu are due", got,
                                       some * each);
                for (size_t i = 0; i < some; i++)
                        part_put(t->data, first + i, ids[first + i], piece + i * each);
                t->distribution.received_bytes += some * each;
        }
        return 0;
}

/* Collective. Whoever waits for a piece gets one, whatever fails elsewhere. */
static int distribute(struct training *t, const uint32_t *ids, size_t count, struct err *err)
{
        size_t most = PIECE_BYTES / part_sample_bytes(t->data) + 1;
        CLEANUP(free_p) uint8_t *piece = malloc(most * part_sample_bytes(t->data));
        int r = piece != NULL ? 0 : err_set(err, -ENOMEM, "no memory for %zu samples", most);

        if (r == 0 && t->world.rank > 0)
                r = part_open(t->data, count, err);
        r = world_agree(&t->world, r, err);
        if (r < 0 || piece == NULL)
                return r;
        if (t->world.rank > 0)
                return receive_shard(t, ids, count, piece, most, err);
        for (int rank = 1; rank < t->world.size; rank++)
                if (shares_computes(&t->shares, rank) && send_shard(t, rank, piece, most, err) < 0)
                        r = err->code;
        return r;
}

/* All shards are known by their numbers here, this worker's by its bytes when it is done. */
static int keep_shard(struct training *t, struct err *err)
{
        bool sent = strcmp(t->options->distribute, "manager") == 0;
        bool computes = shares_computes(&t->shares, t->world.rank);
        const uint32_t *ids = NULL;
        size_t count = computes ? owned_shard(sampler_owned(t->sampler),
                                              shares_worker(&t->shares, t->world.rank), &ids)
                                : 0;
        int r = sent ? world_agree(&t->world, distribute(t, ids, count, err), err) : 0;

        return r < 0 || (sent && t->world.rank > 0) ? r : part_keep(t->data, ids, count, err);
}

static int open_messages(struct training *t, size_t worker, struct err *err)
{
        const struct owned *owned = sampler_owned(t->sampler);
        struct ring *r = &t->ring;
        size_t most = owned_round(owned, 0), next = owned_next(owned, worker);
        const uint32_t *ids;

        if (most == 0 || next == worker || owned_shard(owned, worker, &ids) == 0)
                return 0;
        r->item_bytes = sizeof(uint32_t) + part_sample_bytes(t->data);
        r->out = malloc(most * r->item_bytes);
        r->in = malloc(most * r->item_bytes);
        r->came = calloc(most, sizeof(*r->came));
        if (r->out == NULL || r->in == NULL || r->came == NULL)
                return err_set(err, -ENOMEM, "--neighbour-exchange: no memory for %zu samples both ways",
                               most);
        r->next = t->shares.first_worker + (int) next;
        r->previous = t->shares.first_worker + (int) owned_previous(owned, worker);
        MPI_Type_contiguous((int) r->item_bytes, MPI_BYTE, &r->item);
        MPI_Type_commit(&r->item);
        r->passes = true;
        return 0;
}

int ring_open(struct training *t, struct err *err)
{
        size_t worker = shares_worker(&t->shares, t->world.rank);
        int r = 0;

        if (!train_options_owned(t->options) || t->options->measure || !t->world.parallel)
                return 0;
        if (sampler_replay(t->sampler, t->step) < 0)
                r = err_set(err, -ENOMEM, "no memory for the samples of the shards");
        r = world_agree(&t->world, r, err);
        if (r == 0)
                r = world_agree(&t->world, keep_shard(t, err), err);
        if (r < 0 || !shares_computes(&t->shares, t->world.rank))
                return r;
        sampler_keep(t->sampler, worker);
        return open_messages(t, worker, err);
}

/* What came takes the places of what went. */
static void finish(struct training *t)
{
        struct ring *r = &t->ring;

        if (r->count == 0)
                return;
        patience_wait(r->requests, 2);
        for (size_t i = 0; i < r->count; i++) {
                const uint8_t *in = r->in + i * r->item_bytes;
                uint32_t went;

                memcpy(&went, r->out + i * r->item_bytes, sizeof(went));
                memcpy(&r->came[i], in, sizeof(r->came[i]));
                part_put(t->data, t->data->places[went], r->came[i], in + sizeof(r->came[i]));
        }
        owned_get(sampler_owned(t->sampler), r->came, r->count);
        r->count = 0;
}

static void start(struct training *t, uint64_t epoch, size_t step)
{
        struct owned *owned = sampler_owned(t->sampler);
        struct ring *r = &t->ring;
        const uint32_t *ids;
        struct err err;

        r->count = owned_round(owned, step);
        if (r->count == 0)
                return;
        ids = owned_give(owned, epoch, step);
        for (size_t i = 0; i < r->count; i++) {
                uint8_t *out = r->out + i * r->item_bytes;

                memcpy(out, &ids[i], sizeof(ids[i]));
                (void) part_get(t->data, ids[i], out + sizeof(ids[i]), &err); /* it is in memory */
        }
        MPI_Irecv(r->in, (int) r->count, r->item, r->previous, TAG_SAMPLES, MPI_COMM_WORLD, &r->requests[0]);
        MPI_Isend(r->out, (int) r->count, r->item, r->next, TAG_SAMPLES, MPI_COMM_WORLD, &r->requests[1]);
        r->samples += r->count;
        r->bytes += r->count * r->item_bytes;
}

void ring_step(struct training *t, uint64_t step)
{
        uint64_t begin = record_now(), epoch, usec;
        size_t epoch_step;

        if (!t->ring.passes || step <= t->first_step)
                return;
        finish(t);
        sampler_locate(t->sampler, step - 1, &epoch, &epoch_step);
        start(t, epoch, epoch_step);
        usec = record_done(&t->record, RECORD_LOAD, step, begin) - begin;
        t->ring.usec += usec;
        t->record.load_waited_usec += usec; /* nothing was computed beside it */
        t->record.passed_bytes = t->ring.bytes;
}

void ring_end(struct training *t)
{
        finish(t);
}

void ring_close(struct training *t)
{
        free(t->ring.out);
        free(t->ring.in);
        free(t->ring.came);
        if (t->ring.passes)
                MPI_Type_free(&t->ring.item);
}
