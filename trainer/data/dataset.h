/* Dataset: labelled samples in memory, turned into floats batch by batch.
 *
 * A directory holds one of three forms:
 * - IDX: the four files of MNIST and its kin, each plain or with .gz;
 * - raw: train/CLASS/NAME.pgm and test/CLASS/NAME.pgm, or .ppm (binary, 8 bits); classes in the order of
 * their names. They are read in stripes, so that with `resize` an image may be larger than memory;
 * - text: any files; the text model learns to continue them. The last tenth is the test.
 * After dataset_open() it is read-only and may be used by several threads. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "trainer/data/preprocess.h"
#include "trainer/data/seen.h"
#include "trainer/model.h"

#define TEXT_CONTEXT        4 /* words before the one to be told */
#define TEXT_SAMPLE         (TEXT_CONTEXT + 1)
#define TEXT_VOCABULARY_MAX 8192 /* words known; number 0 stands for all others */
#define TEXT_BYTES_MAX      ((size_t) 1 << 28)

enum dataset_split { DATASET_TRAIN, DATASET_TEST, DATASET_SPLITS };

struct vocabulary;

struct dataset_samples {
        size_t count;
        uint8_t *pixels;  /* count x height x width x channels; NULL for text */
        int32_t *labels;  /* NULL for text */
        uint32_t *tokens; /* count + TEXT_CONTEXT; sample i is told by tokens i .. i + TEXT_CONTEXT - 1. Of a
                           * part: TEXT_SAMPLE for every sample that is here */
};

struct dataset {
        const char *form; /* idx, raw or text */
        struct dataset_samples splits[DATASET_SPLITS];
        struct model_size size;
        struct preprocess preprocess;
        uint64_t seed;
        struct seen seen;              /* files that were read, or will never fit */
        const struct seen *later;      /* files to pass over while opening, as they join later; NULL = none */
        struct vocabulary *vocabulary; /* text: numbers of the words known; NULL for bytes */
        float value[256];              /* pixel -> float */
        uint32_t *places;              /* sample number -> place in this rank's part; NULL = all are here */
        char (*classes)[64];           /* raw: names of the classes */
};

/* dataset_open() - @text: the directory is read as text; @later: training files to pass over, as they join
 * later: their names as dataset_poll() tells them; NULL = none. Return: 0, -ENOENT, -EINVAL (with the file's
 * name), -ENOMEM. */
int dataset_open(const char *directory, bool text, const struct preprocess *p, uint64_t seed,
                 const struct seen *later, struct dataset **ret, struct err *err);
void dataset_free(struct dataset *d);
void dataset_free_p(struct dataset **d);

size_t dataset_count(const struct dataset *d, enum dataset_split split);
struct model_size dataset_size(const struct dataset *d);

/* dataset_load() - the samples `ids` as floats and labels, in that order; training images augmented for
 * `epoch`. */
void dataset_load(const struct dataset *d, enum dataset_split split, uint64_t epoch, const uint32_t *ids,
                  size_t count, float *x, int32_t *labels);

/* dataset_poll() - join the samples of new files to the training data, each once, in the order of their
 * names:
 * - IDX: NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte (or .gz), once both are whole;
 * - raw: train/CLASS/NAME.pgm (.ppm) of the classes known, once whole;
 * - text: files that appear; words that were not known count as such. They must be moved there whole.
 * Files that do not fit are said on stderr. Not while another thread loads samples that it may move.
 * @joined: gets the names, one a line, for dataset_join(); may be NULL
 * Return: samples added. */
size_t dataset_poll(struct dataset *d, const char *directory, struct text *joined);

/* dataset_join() - join one file that another rank's dataset_poll() named. Return: 0; -EINVAL, -ENOENT,
 * -ENOMEM: this rank cannot have the same data. */
int dataset_join(struct dataset *d, const char *directory, const char *name, struct err *err);

/* The forms; each fills splits, size and form. For dataset.c. */
int dataset_read_idx(struct dataset *d, const char *directory, struct err *err);
int dataset_read_raw(struct dataset *d, const char *directory, struct err *err);
int dataset_read_text(struct dataset *d, const char *directory, struct err *err);

/* ... and joins a file: 0; -EAGAIN: it is not whole yet; another negative errno: it will never fit. */
int dataset_join_idx(struct dataset *d, const char *directory, const char *name, struct err *err);
int dataset_join_raw(struct dataset *d, const char *directory, const char *name, struct err *err);
int dataset_join_text(struct dataset *d, const char *directory, const char *name, struct err *err);

/* dataset_tokens() - cut text into tokens' numbers; words get numbers by falling frequency, then by spelling.
 * @ret: allocated; @ret_known: numbers used, the one for all others (0) included; @ret_vocabulary: NULL for
 * bytes; the argument may be NULL */
struct vocabulary; /* opaque */
int dataset_tokens(const char *text, size_t size_bytes, bool bytes, uint32_t **ret, size_t *ret_count,
                   size_t *ret_known, struct vocabulary **ret_vocabulary, struct err *err);
void vocabulary_free(struct vocabulary *v);
