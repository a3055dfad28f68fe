/* Loader: a thread that turns samples into floats ahead of the computing.
 *
 * While one slot is computed on, the others fill in turn: several, and the more the smaller they are, so that
 * a busy machine that lets the thread wait does not let the computing wait. A slot fills in segments, and
 * whoever computes may start on the first while the rest is on its way. In segments, files are told of
 * samples before they are read, and a device is sent each segment when it is there. The slots' memory is the
 * backend's. One thread requests and waits.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trainer/data/dataset.h"
#include "trainer/operators/backend.h"
#include "trainer/record.h"

struct loader; /* opaque */

struct loader_request {
        uint64_t key; /* names the chunk */
        uint64_t step, epoch;
        const uint32_t *ids; /* copied */
        size_t count;
};

struct loader_chunk { /* valid until the next loader_take() */
        const uint32_t *ids;
        float *x;
        int32_t *labels;
        size_t count;
};

/* loader_new() - for chunks of up to `capacity` samples, signalled every `segment` samples (0 = the whole
 * chunk). */
int loader_new(const struct dataset *d, const struct backend *b, struct record *r, size_t capacity,
               size_t segment, struct loader **ret, struct err *err);
void loader_free(struct loader *l);

/* loader_request() - start loading these samples. Return: 0, or -EBUSY: loader_ahead() requests are under way
 * already. */
int loader_request(struct loader *l, const struct loader_request *r);

/* loader_ahead() - how many chunks may be requested beside the current one. */
size_t loader_ahead(const struct loader *l);

/* loader_requested() - is the chunk `key` loading or loaded, not yet taken? */
bool loader_requested(const struct loader *l, uint64_t key);

/* loader_drop() - the chunks of that step and later ones, not taken, are requested no longer. */
void loader_drop(struct loader *l, uint64_t step);

/* loader_take() - the chunk requested first becomes the current one; it may still be filling. */
struct loader_chunk loader_take(struct loader *l);

/* loader_processor_usec() - that the loader's thread has had so far. */
uint64_t loader_processor_usec(const struct loader *l);

/* loader_cost_usec() - of processor, that loading so many samples of the current chunk took. */
uint64_t loader_cost_usec(struct loader *l, size_t count);

/* loader_wait() - until `count` samples of the current chunk are there; time waited is counted as not hidden.
 */
void loader_wait(struct loader *l, size_t count);

/* loader_trouble() - the first error of a file, after which samples are not what they should be. Return: 0,
 * or that. */
int loader_trouble(struct loader *l, struct err *err);
