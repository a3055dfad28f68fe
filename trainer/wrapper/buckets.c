/* A row of buckets a step, their memory kept from step to step. */
#include "trainer/wrapper/buckets.h"

#include <assert.h>
#include <errno.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/in_step/mover.h"
#include "trainer/wrapper/device_memory.h"

#define BUCKET_FLOATS ((size_t) 1 << 18)
#define PIECE_FLOATS  ((size_t) 1 << 28)

struct part { /* a tensor of a bucket */
        void *values;
        size_t count;
        enum remuda_train_type type;
        bool on_device;
};

struct bucket {
        struct part *parts;
        size_t part_count, part_room;
        float *memory; /* of its own */
        size_t count, room;
        float *sum; /* what is added up: its memory, or the one tensor in place */
        bool ended;
};

struct buckets {
        bool parallel, by_size;
        struct train_options_list segments;
        struct bucket *of;
        size_t count, room;    /* of this step; ever */
        MPI_Request *requests; /* one a bucket */
        size_t request_room;
        struct mover *mover;  /* moves them while the caller computes; NULL = each call here does */
        bool given;           /* to it, which has the library and the requests until they are taken back */
        size_t next, tensors; /* bucket to begin; tensors of this step */
        void *staged;         /* what comes from a device or goes there */
        size_t staged_bytes;
};

static size_t size_of(enum remuda_train_type type)
{
        return type == REMUDA_TRAIN_BFLOAT16 ? sizeof(uint16_t) : sizeof(float);
}

static float from_bfloat16(uint16_t value)
{
        uint32_t bits = (uint32_t) value << 16;
        float f;

        memcpy(&f, &bits, sizeof(f));
        return f;
}

/* The nearest, of two equally near the even one; what is no number stays none. */
static uint16_t to_bfloat16(float f)
{
        uint32_t bits;

        memcpy(&bits, &f, sizeof(bits));
        if (f != f)
                return (uint16_t) (bits >> 16 | 0x40);
        return (uint16_t) ((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

struct buckets *buckets_new(bool parallel, const struct train_options_list *segments)
{
        static const struct train_options_list none;
        struct buckets *b = calloc(1, sizeof(*b));

        if (b == NULL)
                return NULL;
        b->parallel = parallel;
        b->by_size = segments != NULL && segments->count == 0;
        b->mover = parallel && segments != NULL ? mover_new(MPI_THREAD_MULTIPLE) : NULL;
        segments = segments != NULL ? segments : &none;
        b->segments.values = calloc(segments->count + 1, sizeof(*b->segments.values));
        if (b->segments.values == NULL) {
                buckets_free(b);
                return NULL;
        }
        b->segments.count = segments->count;
        if (segments->count > 0)
                memcpy(b->segments.values, segments->values, segments->count * sizeof(*segments->values));
        return b;
}

static void take_back(struct buckets *b)
{
        if (b->given)
                mover_take(b->mover);
        b->given = false;
}

void buckets_free(struct buckets *b)
{
        if (b == NULL)
                return;
        take_back(b);
        mover_free(b->mover);
        free(b->requests);
        for (size_t i = 0; i < b->room; i++) {
                free(b->of[i].parts);
                free(b->of[i].memory);
        }
        free(b->of);
        free(b->staged);
        free(b->segments.values);
        free(b);
}

/* Room for one more of `size` bytes each. Return: false without memory. */
static bool grow(void **array, size_t *room, size_t wanted, size_t size)
{
        size_t more = *room * 2 > wanted ? *room * 2 : wanted;
        void *larger;

        if (wanted <= *room)
                return true;
        larger = reallocarray(*array, more, size);
        if (larger == NULL)
                return false;
        memset((char *) larger + *room * size, 0, (more - *room) * size);
        *array = larger;
        *room = more;
        return true;
}

static struct bucket *open_bucket(struct buckets *b)
{
        struct bucket *last = b->count > 0 ? &b->of[b->count - 1] : NULL;

        if (last != NULL && !last->ended)
                return last;
        if (b->count == b->request_room)
                take_back(b); /* the requests may get another place */
        if (!grow((void **) &b->of, &b->room, b->count + 1, sizeof(*b->of)) ||
            !grow((void **) &b->requests, &b->request_room, b->count + 1, sizeof(*b->requests)))
                return NULL;
        assert(b->of != NULL);
        last = &b->of[b->count++];
        last->part_count = last->count = 0;
        last->sum = NULL;
        last->ended = false;
        return last;
}

static void begin(const struct bucket *o, MPI_Request *request)
{
        *request = MPI_REQUEST_NULL;
        for (size_t done = 0; done < o->count;) {
                size_t some = o->count - done < PIECE_FLOATS ? o->count - done : PIECE_FLOATS;
                float *at = o->sum + done;

                done += some;
                if (done < o->count) /* a request holds one piece */
                        MPI_Allreduce(MPI_IN_PLACE, at, (int) some, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
                else
                        MPI_Iallreduce(MPI_IN_PLACE, at, (int) some, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD,
                                       request);
        }
}

/* Begins what has ended, and moves what is under way, unless that moves by itself. */
static void move_on(struct buckets *b)
{
        size_t next = b->next;
        int done;

        while (next < b->count && b->of[next].ended)
                next++;
        if (next == 0 || (next == b->next && b->given))
                return;
        take_back(b);
        for (; b->next < next; b->next++)
                begin(&b->of[b->next], &b->requests[b->next]);
        MPI_Testall((int) b->next, b->requests, &done, MPI_STATUSES_IGNORE);
        mover_give(b->mover, b->requests, b->next);
        b->given = b->mover != NULL;
}

/* The values of a part, where the processor can read them. */
static void *in_reach(struct buckets *b, const struct part *p, bool filled)
{
        if (!p->on_device)
                return p->values;
        if (filled)
                device_memory_copy(b->staged, p->values, p->count * size_of(p->type));
        return b->staged;
}

static void weigh(const void *values, size_t count, enum remuda_train_type type, float weight, float *to)
{
        const float *floats = values;
        const uint16_t *halves = values;

        if (weight <= 0) /* not even a NaN counts */
                memset(to, 0, count * sizeof(*to));
        else if (type == REMUDA_TRAIN_BFLOAT16)
                for (size_t i = 0; i < count; i++)
                        to[i] = from_bfloat16(halves[i]) * weight;
        else
                for (size_t i = 0; i < count; i++)
                        to[i] = floats[i] * weight;
}

static bool ends_here(const struct buckets *b, const struct bucket *o)
{
        for (size_t i = 0; i < b->segments.count; i++)
                if (b->segments.values[i] == b->tensors)
                        return true;
        return b->by_size && o->count >= BUCKET_FLOATS;
}

/* Takes the tensor in; its place in the sum is the bucket's end. */
static int take(struct buckets *b, struct bucket *o, struct part p, float weight, struct err *err)
{
        bool alone = o->part_count == 0 && p.count >= BUCKET_FLOATS && p.type == REMUDA_TRAIN_FLOAT32 &&
                     b->by_size;

        if (!grow((void **) &o->parts, &o->part_room, o->part_count + 1, sizeof(*o->parts)) ||
            ((!alone || p.on_device) &&
             !grow((void **) &o->memory, &o->room, o->count + p.count, sizeof(*o->memory))) ||
            (p.on_device && !grow(&b->staged, &b->staged_bytes, p.count * size_of(p.type), 1)))
                return err_set(err, -ENOMEM, "no memory for a gradient of %zu values", p.count);
        o->sum = alone && !p.on_device ? p.values : o->memory;
        weigh(in_reach(b, &p, weight > 0), p.count, p.type, weight, o->sum + o->count);
        o->parts[o->part_count++] = p;
        o->count += p.count;
        return 0;
}

int buckets_add(struct buckets *b, void *values, size_t count, enum remuda_train_type type, float weight,
                struct err *err)
{
        struct part p = { values, count, type, device_memory_is(values, count * size_of(type)) };
        struct bucket *o = b->count > 0 ? &b->of[b->count - 1] : NULL;

        if (!b->parallel)
                return 0;
        if (p.on_device && device_memory_check(err) < 0)
                return err->code;
        if (o != NULL && b->by_size && count >= BUCKET_FLOATS) /* large: by itself */
                o->ended = true;
        o = open_bucket(b);
        if (o == NULL)
                return err_set(err, -ENOMEM, "no memory for a gradient of %zu values", count);
        if (take(b, o, p, weight, err) < 0)
                return err->code;
        o->ended = ends_here(b, o);
        b->tensors++;
        move_on(b);
        return 0;
}

static void give_back(struct buckets *b, const struct bucket *o)
{
        const float *from = o->sum;

        for (size_t i = 0; i < o->part_count; from += o->parts[i++].count) {
                const struct part *p = &o->parts[i];
                void *to = in_reach(b, p, false);
                uint16_t *halves = to;

                if (p->type == REMUDA_TRAIN_BFLOAT16)
                        for (size_t k = 0; k < p->count; k++)
                                halves[k] = to_bfloat16(from[k]);
                else if (to != (const void *) from)
                        memcpy(to, from, p->count * sizeof(*from));
                if (p->on_device)
                        device_memory_copy(p->values, to, p->count * size_of(p->type));
        }
}

static int check_segments(const struct buckets *b, struct err *err)
{
        const struct train_options_list *s = &b->segments;

        if (s->count == 0 || b->tensors == 0 || s->values[s->count - 1] < b->tensors)
                return 0;
        (void) err_set(err, -EINVAL,
                       "REMUDA_SEGMENTS ends with tensor %zu, counted from 0, this program reduces %zu in a "
                       "step: plan the segments "
                       "for it, or leave spec.segments out",
                       s->values[s->count - 1], b->tensors);
        return 1;
}

int buckets_wait(struct buckets *b, struct err *err)
{
        int result = check_segments(b, err);

        take_back(b);
        for (; b->next < b->count; b->next++)
                begin(&b->of[b->next], &b->requests[b->next]);
        mover_wait(b->requests, b->count);
        for (size_t i = 0; i < b->count; i++)
                give_back(b, &b->of[i]);
        b->count = b->next = b->tensors = 0;
        return result;
}
