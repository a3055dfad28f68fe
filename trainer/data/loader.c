/* One thread, a ring of slots: requests wait in it, fill segment by segment, and are taken in turn. */
#include "trainer/data/loader.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "io/clock.h"

#define SLOTS_MIN   4 /* one to compute on and three that fill */
#define SLOTS_LARGE 2 /* of images that are computed in tiles */
#define SLOTS_MAX   48
#define SLOTS_BYTES ((size_t) 8 << 20)
#define AHEAD       512

struct slot {
        struct loader_request request; /* its ids are those below */
        uint32_t *ids;
        float *x;
        int32_t *labels;
        void *x_input, *labels_input; /* to send them by; NULL = there is nothing to send */
        size_t ready;                 /* samples that are there */
        uint64_t cost_usec;           /* of them */
        uint64_t pending;             /* number of the request that the thread has not begun, 0 = none */
};

struct loader {
        const struct dataset *data;
        const struct backend *backend;
        struct record *record;
        size_t capacity, segment, features;
        struct slot slots[SLOTS_MAX]; /* used in turn */
        size_t slot_count;
        uint64_t requests;
        size_t current; /* slot taken last */
        size_t queued;  /* the slots after it that are under way or waiting to be taken */
        bool closing, started;
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t wake, progress;
        struct err trouble; /* the first of its own */
};

uint64_t loader_processor_usec(const struct loader *l)
{
        clockid_t clock;

        return pthread_getcpuclockid(l->thread, &clock) == 0 ? clock_usec(clock) : 0;
}

/* A segment goes to the device while the one before is computed on. Without segments a chunk goes as a whole,
 * when it is computed on. */
static void send_on(const struct loader *l, const struct slot *s, size_t first, size_t count)
{
        size_t sample_bytes = l->features * sizeof(*s->x);

        backend_send(l->backend, s->x_input, first * sample_bytes, count * sample_bytes);
        backend_send(l->backend, s->labels_input, first * sizeof(*s->labels), count * sizeof(*s->labels));
}

/* Of a chunk that fills in segments the disk knows as many samples ahead: it reads them side by side, while
 * the processor makes floats of the segment before. @known: samples that it was told. Return: that now. */
static size_t announce(const struct loader *l, const struct loader_request *r, size_t known, size_t until)
{
        if (until > r->count)
                until = r->count;
        if (until > known)
                dataset_announce(l->data, DATASET_TRAIN, r->ids + known, until - known);
        return until > known ? until : known;
}

/* Fills a slot segment by segment; the lock is held only to publish. Once the last segment is published the
 * slot may be requested anew at any moment: its request is therefore taken before.
 * @request: the slot's when it was taken */
static void fill(struct loader *l, struct slot *s, struct loader_request request)
{
        size_t segment = l->segment > 0 ? l->segment : l->capacity;
        uint64_t begin = record_now(), had = loader_processor_usec(l);
        size_t known = 0;
        struct err err = { 0 };

        for (size_t at = 0; at < request.count; at += segment) {
                size_t count = request.count - at < segment ? request.count - at : segment;
                int r;

                if (l->segment > 0)
                        known = announce(l, &request, known, at + count + AHEAD);
                r = dataset_load(l->data, DATASET_TRAIN, request.epoch, request.ids + at, count,
                                 s->x + at * l->features, s->labels + at, &err);

                if (l->segment > 0)
                        send_on(l, s, at, count);
                (void) pthread_mutex_lock(&l->lock);
                if (r < 0 && l->trouble.code == 0)
                        l->trouble = err;
                s->ready = at + count;
                s->cost_usec = loader_processor_usec(l) - had;
                (void) pthread_cond_signal(&l->progress);
                (void) pthread_mutex_unlock(&l->lock);
        }
        (void) record_done(l->record, RECORD_LOAD, request.step, begin);
}

static size_t slot_after(const struct loader *l, size_t n)
{
        return (l->current + n) % l->slot_count;
}

/* The oldest of the requests that were not begun; NULL = none. */
static struct slot *next_pending(struct loader *l)
{
        struct slot *oldest = NULL;

        for (size_t i = 0; i < l->slot_count; i++) {
                struct slot *s = &l->slots[i];

                if (s->pending != 0 && (oldest == NULL || s->pending < oldest->pending))
                        oldest = s;
        }
        return oldest;
}

static void *loader_main(void *argument)
{
        struct loader *l = argument;

        (void) pthread_mutex_lock(&l->lock);
        while (!l->closing) {
                struct slot *s = next_pending(l);
                struct loader_request request;

                if (s == NULL) {
                        (void) pthread_cond_wait(&l->wake, &l->lock);
                        continue;
                }
                s->pending = 0;
                request = s->request;
                (void) pthread_mutex_unlock(&l->lock);
                fill(l, s, request);
                (void) pthread_mutex_lock(&l->lock);
        }
        (void) pthread_mutex_unlock(&l->lock);
        return NULL;
}

/* The smaller a chunk, the sooner it is used up, and the longer, in chunks, is a moment in which somebody
 * else has the processor. Chunks that take more than tiles may are as few as can be. */
static size_t slots_for(size_t chunk_bytes, uint64_t tile_bytes)
{
        size_t fit = chunk_bytes > 0 ? SLOTS_BYTES / chunk_bytes : SLOTS_MAX;

        if (tile_bytes > 0 && SLOTS_MIN * chunk_bytes > tile_bytes)
                return SLOTS_LARGE;
        return fit < SLOTS_MIN ? SLOTS_MIN : fit > SLOTS_MAX ? SLOTS_MAX : fit;
}

int loader_new(const struct dataset *d, const struct backend *b, struct record *r, size_t capacity,
               size_t segment, struct loader **ret, struct err *err)
{
        struct loader *l = calloc(1, sizeof(*l));
        struct model_size size = dataset_size(d);
        bool whole = l != NULL;

        if (l == NULL)
                return err_set(err, -ENOMEM, "no memory for the loader");
        *l = (struct loader){ .data = d,
                              .backend = b,
                              .record = r,
                              .capacity = capacity,
                              .segment = segment,
                              .features = shape_size(&size.input),
                              .slot_count = slots_for(capacity * shape_size(&size.input) * sizeof(float),
                                                      b->tile_bytes) };
        (void) pthread_mutex_init(&l->lock, NULL);
        (void) pthread_cond_init(&l->wake, NULL);
        (void) pthread_cond_init(&l->progress, NULL);
        for (size_t i = 0; i < l->slot_count; i++) {
                l->slots[i].ids = calloc(capacity, sizeof(uint32_t));
                l->slots[i].x = backend_allocate_input(b, capacity * l->features * sizeof(float),
                                                       &l->slots[i].x_input);
                l->slots[i].labels =
                        backend_allocate_input(b, capacity * sizeof(int32_t), &l->slots[i].labels_input);
                whole = whole && l->slots[i].ids != NULL && l->slots[i].x != NULL &&
                        l->slots[i].labels != NULL;
        }
        l->started = whole && pthread_create(&l->thread, NULL, loader_main, l) == 0;
        if (!l->started) {
                loader_free(l);
                return err_set(err, -ENOMEM, "the loader for batches of %zu could not be set up", capacity);
        }
        *ret = l;
        return 0;
}

void loader_free(struct loader *l)
{
        if (l == NULL)
                return;
        (void) pthread_mutex_lock(&l->lock);
        l->closing = true;
        (void) pthread_cond_signal(&l->wake);
        (void) pthread_mutex_unlock(&l->lock);
        if (l->started)
                (void) pthread_join(l->thread, NULL);
        for (size_t i = 0; i < l->slot_count; i++) {
                free(l->slots[i].ids);
                backend_release(l->backend, l->slots[i].x);
                backend_release(l->backend, l->slots[i].labels);
        }
        (void) pthread_mutex_destroy(&l->lock);
        (void) pthread_cond_destroy(&l->wake);
        (void) pthread_cond_destroy(&l->progress);
        free(l);
}

size_t loader_ahead(const struct loader *l)
{
        return l->slot_count - 1;
}

bool loader_requested(const struct loader *l, uint64_t key)
{
        for (size_t i = 1; i <= l->queued; i++)
                if (l->slots[slot_after(l, i)].request.key == key)
                        return true;
        return false;
}

int loader_request(struct loader *l, const struct loader_request *r)
{
        struct slot *s;

        if (l->queued == l->slot_count - 1 || r->count > l->capacity)
                return -EBUSY;
        (void) pthread_mutex_lock(&l->lock);
        s = &l->slots[slot_after(l, ++l->queued)];
        memcpy(s->ids, r->ids, r->count * sizeof(*r->ids));
        s->request = *r;
        s->request.ids = s->ids;
        backend_to_host(l->backend, s->x);
        backend_to_host(l->backend, s->labels);
        s->ready = 0;
        s->cost_usec = 0;
        s->pending = ++l->requests;
        (void) pthread_cond_signal(&l->wake);
        (void) pthread_mutex_unlock(&l->lock);
        return 0;
}

void loader_drop(struct loader *l, uint64_t step)
{
        (void) pthread_mutex_lock(&l->lock);
        for (; l->queued > 0; l->queued--) {
                struct slot *s = &l->slots[slot_after(l, l->queued)];

                if (s->request.step < step)
                        break;
                /* what the thread has begun it ends: the slot is its own until then */
                while (s->pending == 0 && s->ready < s->request.count)
                        (void) pthread_cond_wait(&l->progress, &l->lock);
                s->pending = 0;
        }
        (void) pthread_mutex_unlock(&l->lock);
}

struct loader_chunk loader_take(struct loader *l)
{
        const struct slot *s;

        l->current = slot_after(l, 1);
        l->queued--;
        /* the thread may still fill it: it holds its own pointer */
        s = &l->slots[l->current];
        return (struct loader_chunk){
                .ids = s->ids, .x = s->x, .labels = s->labels, .count = s->request.count
        };
}

uint64_t loader_cost_usec(struct loader *l, size_t count)
{
        const struct slot *s = &l->slots[l->current];
        uint64_t usec;

        (void) pthread_mutex_lock(&l->lock);
        usec = s->ready > 0 ? s->cost_usec * count / s->ready : 0;
        (void) pthread_mutex_unlock(&l->lock);
        return usec;
}

void loader_wait(struct loader *l, size_t count)
{
        const struct slot *s = &l->slots[l->current];
        uint64_t begin;

        (void) pthread_mutex_lock(&l->lock);
        if (s->ready < count) {
                begin = record_now();
                while (s->ready < count)
                        (void) pthread_cond_wait(&l->progress, &l->lock);
                l->record->load_waited_usec +=
                        record_done(l->record, RECORD_WAIT, s->request.step, begin) - begin;
        }
        (void) pthread_mutex_unlock(&l->lock);
}

int loader_trouble(struct loader *l, struct err *err)
{
        int r;

        (void) pthread_mutex_lock(&l->lock);
        r = l->trouble.code;
        if (r < 0)
                *err = l->trouble;
        (void) pthread_mutex_unlock(&l->lock);
        return r;
}
