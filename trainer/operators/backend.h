/* Backend: a runtime to train with: its kernels, its memory, its options. One file a backend in
 * trainer/backends/, one row each; a program is linked with one of them.
 *
 * Addresses are host addresses from `allocate`; a backend with memory of its own keeps a copy of the same
 * range and moves data in `to_host` (before the host looks or writes) and `to_device` (after the host wrote);
 * for the others both are NULL. A backend whose kernels can fail keeps its first error and tells it through
 * `trouble`. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "trainer/operators/kernels.h"
#include "trainer/operators/tunable.h"

struct backend_options {
        size_t cpes;               /* sunway: 1..4096 */
        const char *variant;       /* sunway: threads or athread; NULL = threads */
        bool gemm_blas;            /* sunway: --gemm blas */
        bool no_staging;           /* sunway: operands straight from main memory */
        const char *sunway_chip;   /* sunway: a name of core_group.h; NULL = this machine's */
        size_t store_bytes;        /* sunway: of a local store; 0 = the chip's */
        bool one_buffer;           /* sunway: transfers are waited for at once */
        bool master_merges;        /* sunway: gradients are added up by the management core */
        uint64_t dma_bytes_per_s;  /* sunway, simulated: of each slave core; 0 = they take no time */
        size_t tuned[TUNABLE_MAX]; /* a setting of the row's tunables */
        size_t cpus;               /* CPUs this process may use */
        bool alone;                /* no other rank of the world computes on them */
        const char *device;        /* opencl: PLATFORM:DEVICE numbers, NULL = the chip's, else the best */
        struct {                   /* that this process was given; each NULL = not said */
                const char *vendor, *ids, *places; /* REMUDA_VENDOR, REMUDA_DEVICES, REMUDA_PCI */
                size_t local_rank;                 /* which of equals */
        } chip;
        bool patches; /* --convolution patches: no convolution with its pooling in one pass */
        bool direct;  /* --convolution direct, whatever is tuned */
};

struct backend_traffic { /* main-memory bytes moved by kernels, 0 where not counted */
        uint64_t read_bytes, written_bytes;
        uint64_t unstaged_bytes; /* what the same kernels move without staging */
        size_t local_peak_bytes; /* most that one core's local store held */
        const char *chip;        /* whose local stores they are; NULL = there are none */
        size_t local_room_bytes; /* of one, for operands */
        /* numbers of other cores and ranks that were added to a sum of gradients, by whom */
        uint64_t merged_by_slave_cores, merged_by_management_core;
        uint64_t simulated_nsec; /* of all kernels by the slave cores; 0 = not simulated */
};

struct backend {
        const struct backend_row *row;
        struct kernels kernels; /* the row's, but for those from a library */
        uint32_t bypass;        /* OP_BIT()s of the fused operators that would go around one from a library */
        /* what a library's activation is judged by, in double precision; NULL without one */
        void (*activation_reference)(size_t rows, size_t cols, const double *x, double *y);
        void *state;
        uint64_t memory_bytes; /* of the device's own; 0 = it uses the host's */
        uint64_t tile_bytes;   /* a runner's image operators take more in tiles alone; 0 = no limit */
        char device_model[96]; /* what tuning results are remembered under */
};

struct backend_row {
        const char *runtime; /* cpu, sunway, opencl */
        const struct tunable_rows *tunables;
        struct kernels kernels;
        /* first thing in main(), before MPI: may start the program anew in an environment that its libraries
         * read while they are loaded; NULL = nothing to do */
        void (*prepare)(char **argv);
        /* prints the devices that there are to choose from; NULL = there is no choice */
        int (*list)(const struct backend_options *o, struct err *err);
        /* sets state and device_model */
        int (*open)(const struct backend_options *o, struct backend *b, struct err *err);
        void (*close)(void *state);                        /* NULL = nothing to do */
        void *(*allocate)(void *state, size_t size_bytes); /* 64-byte aligned, zeroed; NULL = no memory */
        /* memory that the host fills for the device alone, piece by piece: a piece that is sent travels while
         * kernels compute; what was not sent does in to_device(); to_host() before it is filled anew. @ret:
         * to send by, from any thread, one at a time; NULL = there is nothing to send. NULL = allocate() does
         */
        void *(*allocate_input)(void *state, size_t size_bytes, void **ret_input);
        void (*send)(void *input, size_t offset, size_t size_bytes);
        void (*release)(void *state, void *memory);
        void (*to_host)(void *state, const void *memory);
        void (*to_device)(void *state, const void *memory);
        /* with memory of its own: what is computed on the way to other memory, while kernels go on */
        void *(*copy_begin)(void *state, const float *memory, size_t count, float *to);
        int (*copy_wait)(void *state, void *copy);    /* the copy is no more */
        int (*trouble)(void *state, struct err *err); /* NULL, or 0 / the first error since opening */
        void (*traffic)(void *state, struct backend_traffic *ret); /* NULL where not counted */
};

/* The one backend that this program is linked with. */
extern const struct backend_row backend_linked;

int backend_open(const struct backend_row *row, const struct backend_options *o, struct backend *ret,
                 struct err *err);
void backend_close(struct backend *b); /* also of one that is zeroed, or closed already */

/* backend_allocate() - 64-byte aligned, zeroed. Return: NULL = no memory. backend_floats() - never of no
 * floats. */
void *backend_allocate(const struct backend *b, size_t size_bytes);
float *backend_floats(const struct backend *b, size_t count);
void backend_release(const struct backend *b, void *memory); /* NULL is fine */

/* backend_allocate_input() - as backend_allocate(), for what the host fills piece by piece. backend_send() -
 * a piece is there; from any thread, one at a time. @input: NULL is fine: to_device() is enough */
void *backend_allocate_input(const struct backend *b, size_t size_bytes, void **ret_input);
void backend_send(const struct backend *b, void *input, size_t offset, size_t size_bytes);

/* backend_has_own_memory() - to_host() and to_device() move data; elsewhere they do nothing. */
bool backend_has_own_memory(const struct backend *b);
void backend_to_host(const struct backend *b, const void *memory);
void backend_to_device(const struct backend *b, const void *memory);

/* backend_copy_begin() - `count` floats that kernels before it compute; those after it go on meanwhile.
 * @to: not backend memory; not looked at before backend_copy_wait(), once for each, NULL included. */
void *backend_copy_begin(const struct backend *b, const float *memory, size_t count, float *to);
int backend_copy_wait(const struct backend *b, void *copy); /* 0, or -EIO: see backend_trouble() */

/* backend_add() - sum += x, in the host's memory, of gradients that came from other workers: the same bits on
 * every backend. */
void backend_add(const struct backend *b, size_t count, const float *x, float *sum);

/* backend_trouble() - Return: 0, or the first error of a kernel since opening. */
int backend_trouble(const struct backend *b, struct err *err);
