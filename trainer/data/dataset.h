/* Dataset: labelled samples, turned into floats batch by batch.
 *
 * A directory holds one of five forms. Three are read into memory:
 * - IDX: the four files of MNIST and its kin, each plain or with .gz;
 * - raw: train/CLASS/NAME.pgm and test/CLASS/NAME.pgm, or .ppm (binary, 8 bits), .jpg, .png; classes in the
 * order of their names. PGM and PPM are read in stripes, so that with `resize` an image may be larger than
 * memory;
 * - text: any files; the text model learns to continue them. The last tenth is the test.
 * Two may be larger than memory, and are read as samples are needed:
 * - raw shards: train-*-images-idx3-ubyte with train-*-labels-idx1-ubyte, and test-* alike, not compressed;
 * - tar shards: train-*.tar and test-*.tar, as webdataset has them, of KEY.cls and KEY.jpg (.png, .pgm,
 * .ppm). Of these, 20 bytes a sample are in memory. After dataset_open() it is read-only and may be used by
 * several threads. */
#pragma once

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"
#include "trainer/data/preprocess.h"
#include "trainer/data/sample_files.h"
#include "trainer/data/seen.h"
#include "trainer/data/tokens.h"
#include "trainer/data/wordpiece.h"
#include "trainer/model.h"

#define DATASET_TEXT_CONTEXT 4 /* words before the one to be predicted */
#define DATASET_TEXT_SAMPLE  (DATASET_TEXT_CONTEXT + 1)

enum dataset_split { DATASET_TRAIN, DATASET_TEST, DATASET_SPLITS };

struct dataset_samples {
        size_t count;
        uint8_t *pixels;  /* count x height x width x channels; NULL for text, and where they are in files */
        int32_t *labels;  /* NULL for text */
        uint32_t *tokens; /* count + DATASET_TEXT_CONTEXT; sample i is made of tokens i .. i +
                           * DATASET_TEXT_CONTEXT - 1. Of a part: DATASET_TEXT_SAMPLE for every sample that is
                           * here */
};

struct dataset {
        const struct dataset_form *form; /* NULL: its samples are elsewhere until they come */
        struct dataset_samples splits[DATASET_SPLITS];
        struct sample_files files[DATASET_SPLITS]; /* where the form fetches pixels */
        struct model_size size;
        struct shape stored; /* raw shards: what an image has before it is resized */
        struct preprocess_steps preprocess;
        uint64_t seed;
        bool text;
        struct seen seen;         /* files that were read, or will never fit */
        const struct seen *later; /* files to pass over while opening, as they join later; NULL = none */
        struct tokens_vocabulary *vocabulary; /* text: numbers of the words known; NULL for bytes */
        struct wordpiece *pieces;             /* text: in place of words; NULL = none */
        float value[256];                     /* pixel -> float */
        uint32_t *places;    /* sample number -> place in this rank's part; NULL = all are here */
        char (*classes)[64]; /* raw: names of the classes */
};

/* A form of data, one file and one row each. */
struct dataset_form {
        /* fills samples, size and names seen; returns 0 or a negative errno */
        int (*read)(struct dataset *d, const char *directory, struct err *err);
        /* the pixels of one sample, where they are not kept in memory; called by several threads */
        int (*fetch)(const struct dataset *d, enum dataset_split split, size_t i, uint8_t *pixels,
                     struct err *err);
        /* joins a file: 0; -EAGAIN: it is not whole yet; another negative errno: it will never fit */
        int (*join)(struct dataset *d, const char *directory, const char *name, struct err *err);
        /* the name by which DIRECTORY/PART/FILE joins; false: it is another file */
        bool (*name_of)(const char *part, const char *file, char *name, size_t name_bytes);
        bool by_class; /* files lie in a directory for each class */
};

extern const struct dataset_form dataset_idx, dataset_raw, dataset_text, dataset_shards, dataset_tar;

/* dataset_grow() - room for `room` images of so many bytes and their labels. Return: 0 or -ENOMEM, with the
 * message. */
int dataset_grow(struct dataset_samples *s, size_t room, size_t image_bytes, struct err *err);

/* dataset_is_visible() - for scandir(3). */
int dataset_is_visible(const struct dirent *entry);

/* dataset_open() - @text: the directory is read as text; @later: training files to pass over, as they join
 * later: their names as dataset_poll() tells them; NULL = none. Return: 0, -ENOENT, -EINVAL (with the file's
 * name), -ENOMEM. */
int dataset_open(const char *directory, bool text, const struct preprocess_steps *p, uint64_t seed,
                 const struct seen *later, struct dataset **ret, struct err *err);
void dataset_free(struct dataset *d);

size_t dataset_count(const struct dataset *d, enum dataset_split split);
struct model_size dataset_size(const struct dataset *d);

/* dataset_load() - the samples `ids` as floats and labels, in that order; training images augmented for
 * `epoch`. Return: 0, or the error of a file. */
int dataset_load(const struct dataset *d, enum dataset_split split, uint64_t epoch, const uint32_t *ids,
                 size_t count, float *x, int32_t *labels, struct err *err);

/* dataset_pixels() - of one sample, as they are stored here. @room: for them, used where they are in a file.
 * Return: `room` or the place in memory; NULL with the error of a file. */
const uint8_t *dataset_pixels(const struct dataset *d, enum dataset_split split, uint32_t id, uint8_t *room,
                              struct err *err);

/* dataset_touch() - a training sample in memory will be asked for so many samples later: it is drawn by
 * chance, and is fetched while the ones before are worked on. */
#define DATASET_FETCH_AHEAD 3
void dataset_touch(const struct dataset *d, uint32_t id);

/* dataset_announce() - these samples will be loaded soon: where they are in files, the disk may read many at
 * once, and not one after the other as each is asked for. */
void dataset_announce(const struct dataset *d, enum dataset_split split, const uint32_t *ids, size_t count);

/* dataset_load_test() - test samples first..first+count-1. @count: DATASET_TEST_MAX at the most. Return: as
 * dataset_load(). */
#define DATASET_TEST_MAX 100
int dataset_load_test(const struct dataset *d, size_t first, size_t count, float *x, int32_t *labels,
                      struct err *err);

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
