/* A directory is opened in its form, and samples of all forms become floats; new files join by the form's
 * row. */
#include "trainer/data/dataset.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/cleanup.h"
#include "base/text.h"
#include "trainer/backends/best_unit.h"

#define NAME_BYTES 1024
#define FETCH_MAX  4096 /* bytes of each: the processor itself follows a longer one */
#define LINE_BYTES 64

#define VALUE_SAMPLES 4096

void dataset_free(struct dataset *d)
{
        if (d == NULL)
                return;
        for (int split = 0; split < DATASET_SPLITS; split++) {
                free(d->splits[split].pixels);
                free(d->splits[split].labels);
                free(d->splits[split].tokens);
                sample_files_free(&d->files[split]);
        }
        free(d->classes);
        free(d->places);
        seen_free(&d->seen);
        tokens_vocabulary_free(d->vocabulary);
        wordpiece_free(d->pieces);
        free(d);
}

static void dataset_free_p(struct dataset **d)
{
        dataset_free(*d);
}

/* Mean and deviation of the training pixels; of data that are in files, of VALUE_SAMPLES samples, evenly
 * spaced. */
static int choose_values(struct dataset *d, struct err *err)
{
        const struct dataset_samples *train = &d->splits[DATASET_TRAIN];
        size_t pixels = shape_size(&d->size.input), counts[256] = { 0 };
        size_t every = d->form->fetch != NULL ? train->count / VALUE_SAMPLES + 1 : 1, total = 0;
        CLEANUP(free_p) uint8_t *room = malloc(pixels);
        double mean = 0, square = 0, deviation;

        if (room == NULL)
                return err_set(err, -ENOMEM, "no memory for an image");
        for (size_t i = 0; !d->preprocess.scale && i < train->count; i += every, total += pixels) {
                const uint8_t *image = dataset_pixels(d, DATASET_TRAIN, (uint32_t) i, room, err);

                if (image == NULL)
                        return err->code;
                for (size_t k = 0; k < pixels; k++)
                        counts[image[k]]++;
        }
        for (int v = 0; total > 0 && v < 256; v++) {
                mean += (double) v * (double) counts[v] / (double) total;
                square += (double) v * v * (double) counts[v] / (double) total;
        }
        deviation = sqrt(square - mean * mean);
        for (int v = 0; v < 256; v++)
                d->value[v] = d->preprocess.scale
                                      ? (float) v / 255.0F
                                      : (float) ((v - mean) / (deviation > 0 ? 3 * deviation : 1));
        return 0;
}

static bool is_directory(const char *directory, const char *name)
{
        char path[4096];
        struct stat facts;

        return text_format(path, sizeof(path), "%s/%s", directory, name) && stat(path, &facts) == 0 &&
               S_ISDIR(facts.st_mode);
}

static bool has_shards(const char *directory, const char *suffix)
{
        char **names;
        size_t count = sample_files_list(directory, "train-", suffix, &names);

        sample_files_list_free(names, count);
        return count > 0;
}

/* Files of other names beside it may be what is to join. */
static bool has_idx(const char *directory)
{
        static const char *const ends[] = { "", ".gz" };
        char path[4096];

        for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
                if (text_format(path, sizeof(path), "%s/train-images-idx3-ubyte%s", directory, ends[i]) &&
                    access(path, F_OK) == 0)
                        return true;
        return false;
}

static const struct dataset_form *form_of(const char *directory)
{
        return is_directory(directory, "train")              ? &dataset_raw
               : has_idx(directory)                          ? &dataset_idx
               : has_shards(directory, ".tar")               ? &dataset_tar
               : has_shards(directory, "-images-idx3-ubyte") ? &dataset_shards
                                                             : &dataset_idx;
}

int dataset_open(const char *directory, bool text, const struct preprocess_steps *p, uint64_t seed,
                 const struct seen *later, struct dataset **ret, struct err *err)
{
        CLEANUP(dataset_free_p) struct dataset *d = calloc(1, sizeof(*d));
        int r;

        if (d == NULL)
                return err_set(err, -ENOMEM, "no memory for the data set");
        d->preprocess = *p;
        d->seed = seed;
        d->text = text;
        d->later = later;
        if (!is_directory(directory, "."))
                return err_set(err, -ENOENT, "--data: no directory '%s'", directory);
        d->form = text ? &dataset_text : form_of(directory);
        r = d->form->read(d, directory, err);
        if (r == 0 && !text)
                r = choose_values(d, err);
        if (r < 0)
                return r;
        d->later = NULL;
        *ret = TAKE(d);
        return 0;
}

size_t dataset_count(const struct dataset *d, enum dataset_split split)
{
        return d->splits[split].count;
}

struct model_size dataset_size(const struct dataset *d)
{
        return d->size;
}

/* Another sample's place may be written meanwhile (trainer/data/part.h); where this one's is seen, its bytes
 * are, too. */
static size_t place_in(const uint32_t *places, uint32_t id)
{
        return __atomic_load_n(&places[id], __ATOMIC_ACQUIRE);
}

/* @places: of samples whose tokens follow one another; NULL = samples overlap, and all are here */
static void load_text(const struct dataset_samples *s, const uint32_t *places, const uint32_t *ids,
                      size_t count, float *x, int32_t *labels)
{
        for (size_t i = 0; i < count; i++) {
                const uint32_t *tokens =
                        s->tokens +
                        (places != NULL ? place_in(places, ids[i]) * DATASET_TEXT_SAMPLE : ids[i]);

                for (size_t k = 0; k < DATASET_TEXT_CONTEXT; k++)
                        x[i * DATASET_TEXT_CONTEXT + k] = (float) tokens[k];
                labels[i] = (int32_t) tokens[DATASET_TEXT_CONTEXT];
        }
}

static void augment(const struct dataset *d, uint64_t epoch, const uint32_t *ids, size_t count, float *x)
{
        const struct shape *s = &d->size.input;
        size_t floats = shape_size(s);
        CLEANUP(free_p) float *room = calloc(floats, sizeof(*room));

        for (size_t i = 0; room != NULL && i < count; i++)
                preprocess_augment(&d->preprocess, d->seed, epoch, ids[i], s, d->value[0], x + i * floats,
                                   room);
}

#if defined(__x86_64__)
/* Sixteen at a time. Return: how many are done. */
ON_WIDE_UNIT static size_t wide_values(const float *value, const uint8_t *pixels, size_t count, float *x)
{
        size_t k = 0;

        for (; k + 16 <= count; k += 16) {
                __m512i which = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *) (pixels + k)));

                _mm512_storeu_ps(x + k, _mm512_i32gather_ps(which, value, sizeof(*value)));
        }
        return k;
}
#else
static size_t wide_values(const float *value, const uint8_t *pixels, size_t count, float *x)
{
        (void) value, (void) pixels, (void) count, (void) x;
        return 0;
}
#endif

static void values_of(const float *value, const uint8_t *pixels, size_t count, float *x)
{
        for (size_t k = HAS_WIDE_UNIT ? wide_values(value, pixels, count, x) : 0; k < count; k++)
                x[k] = value[pixels[k]];
}

/* A sample is drawn by chance: it is fetched while the ones before are turned into floats. */
static void fetch(const uint8_t *pixels, size_t count)
{
        for (size_t k = 0; k < count; k += LINE_BYTES)
                __builtin_prefetch(pixels + k);
}

static size_t place_of(const struct dataset *d, enum dataset_split split, uint32_t id)
{
        return split == DATASET_TRAIN && d->places != NULL ? place_in(d->places, id) : id;
}

const uint8_t *dataset_pixels(const struct dataset *d, enum dataset_split split, uint32_t id, uint8_t *room,
                              struct err *err)
{
        const uint8_t *pixels = d->splits[split].pixels;

        if (pixels != NULL)
                return pixels + place_of(d, split, id) * shape_size(&d->size.input);
        assert(d->form->fetch != NULL); /* of every form that keeps no pixels */
        return d->form->fetch(d, split, id, room, err) < 0 ? NULL : room;
}

void dataset_touch(const struct dataset *d, uint32_t id)
{
        size_t bytes = shape_size(&d->size.input);

        if (d->splits[DATASET_TRAIN].pixels != NULL)
                fetch(d->splits[DATASET_TRAIN].pixels + place_of(d, DATASET_TRAIN, id) * bytes,
                      bytes < FETCH_MAX ? bytes : FETCH_MAX);
}

static int load_files(const struct dataset *d, enum dataset_split split, const uint32_t *ids, size_t count,
                      float *x, int32_t *labels, struct err *err)
{
        size_t floats = shape_size(&d->size.input);
        CLEANUP(free_p) uint8_t *room = malloc(floats);

        if (room == NULL)
                return err_set(err, -ENOMEM, "no memory for an image");
        for (size_t i = 0; i < count; i++) {
                if (d->form->fetch(d, split, ids[i], room, err) < 0)
                        return err->code;
                values_of(d->value, room, floats, x + i * floats);
                labels[i] = d->splits[split].labels[ids[i]];
        }
        return 0;
}

static void load_memory(const struct dataset *d, enum dataset_split split, const uint32_t *ids, size_t count,
                        float *x, int32_t *labels)
{
        const struct dataset_samples *s = &d->splits[split];
        size_t floats = shape_size(&d->size.input);

        for (size_t i = 0; i < count; i++) {
                size_t place = place_of(d, split, ids[i]);

                if (i + DATASET_FETCH_AHEAD < count)
                        fetch(s->pixels + place_of(d, split, ids[i + DATASET_FETCH_AHEAD]) * floats,
                              floats < FETCH_MAX ? floats : FETCH_MAX);
                values_of(d->value, s->pixels + place * floats, floats, x + i * floats);
                labels[i] = s->labels[place];
        }
}

int dataset_load(const struct dataset *d, enum dataset_split split, uint64_t epoch, const uint32_t *ids,
                 size_t count, float *x, int32_t *labels, struct err *err)
{
        const struct dataset_samples *s = &d->splits[split];

        if (d->text) {
                load_text(s, split == DATASET_TRAIN ? d->places : NULL, ids, count, x, labels);
                return 0;
        }
        if (s->pixels == NULL && count > 0) {
                if (load_files(d, split, ids, count, x, labels, err) < 0)
                        return err->code;
        } else {
                load_memory(d, split, ids, count, x, labels);
        }
        if (split == DATASET_TRAIN && (d->preprocess.flip > 0 || d->preprocess.crop > 0))
                augment(d, epoch, ids, count, x);
        return 0;
}

void dataset_announce(const struct dataset *d, enum dataset_split split, const uint32_t *ids, size_t count)
{
        if (d->text || d->splits[split].pixels != NULL)
                return;
        for (size_t i = 0; i < count; i++)
                if (ids[i] < d->files[split].count)
                        sample_files_announce(&d->files[split], ids[i]);
}

int dataset_load_test(const struct dataset *d, size_t first, size_t count, float *x, int32_t *labels,
                      struct err *err)
{
        uint32_t ids[DATASET_TEST_MAX];

        for (size_t i = 0; i < count; i++)
                ids[i] = (uint32_t) (first + i);
        return dataset_load(d, DATASET_TEST, 0, ids, count, x, labels, err);
}

int dataset_grow(struct dataset_samples *s, size_t room, size_t image_bytes, struct err *err)
{
        uint8_t *pixels = reallocarray(s->pixels, room, image_bytes);
        int32_t *labels;

        if (pixels != NULL)
                s->pixels = pixels;
        labels = reallocarray(s->labels, room, sizeof(*labels));
        if (labels != NULL)
                s->labels = labels;
        return pixels != NULL && labels != NULL ? 0 : err_set(err, -ENOMEM, "no memory for %zu images", room);
}

int dataset_is_visible(const struct dirent *entry)
{
        return entry->d_name[0] != '.';
}

int dataset_join(struct dataset *d, const char *directory, const char *name, struct err *err)
{
        int r = d->form->join(d, directory, name, err);

        return r < 0 ? err_wrap(err, r == -EAGAIN ? -EINVAL : r,
                                "--poll: rank 0 has joined '%s', here it cannot be", name)
                     : 0;
}

static void try_name(struct dataset *d, const char *directory, const char *name, struct text *joined)
{
        struct err err = { 0 };
        int r;

        if (seen_has(&d->seen, name))
                return;
        r = d->form->join(d, directory, name, &err);
        if (r == -EAGAIN || seen_add(&d->seen, name) < 0)
                return; /* another time */
        if (r < 0)
                (void) fprintf(stderr, "remuda-train: new file '%s/%s' left out: %s\n", directory, name,
                               err.msg);
        else if (joined != NULL)
                text_printf(joined, "%s\n", name);
}

/* Tries the files of DIRECTORY/PART. */
static void try_files(struct dataset *d, const char *directory, const char *part, struct text *joined)
{
        struct dirent **entries = NULL;
        char path[4096], name[NAME_BYTES];
        int count = text_format(path, sizeof(path), "%s/%s", directory, part)
                            ? scandir(path, &entries, dataset_is_visible, alphasort)
                            : 0;

        for (int i = 0; i < count; i++) {
                if (d->form->name_of(part, entries[i]->d_name, name, sizeof(name)) &&
                    strchr(name, '\n') == NULL)
                        try_name(d, directory, name, joined);
                free(entries[i]);
        }
        free(entries);
}

size_t dataset_poll(struct dataset *d, const char *directory, struct text *joined)
{
        size_t before = dataset_count(d, DATASET_TRAIN);
        char part[128];

        if (!d->form->by_class)
                try_files(d, directory, ".", joined);
        else
                for (size_t i = 0; i < d->size.classes; i++)
                        if (text_format(part, sizeof(part), "train/%s", d->classes[i]))
                                try_files(d, directory, part, joined);
        return dataset_count(d, DATASET_TRAIN) - before;
}
