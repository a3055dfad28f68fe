/* The three forms behind one door; the IDX one is read here, and samples of all become floats. */
#include "trainer/data/dataset.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/cleanup.h"
#include "base/text.h"
#include "trainer/backends/best_unit.h"
#include "trainer/data/idx.h"

#define FETCH_AHEAD 3    /* samples */
#define FETCH_MAX   4096 /* bytes of each: the processor itself follows a longer one */
#define LINE_BYTES  64

void dataset_free(struct dataset *d)
{
        if (d == NULL)
                return;
        for (int split = 0; split < DATASET_SPLITS; split++) {
                free(d->splits[split].pixels);
                free(d->splits[split].labels);
                free(d->splits[split].tokens);
        }
        free(d->classes);
        free(d->places);
        seen_free(&d->seen);
        vocabulary_free(d->vocabulary);
        free(d);
}

void dataset_free_p(struct dataset **d)
{
        dataset_free(*d);
}

static int read_file(const char *directory, const char *name, size_t rank, struct idx *ret, struct err *err)
{
        char path[4096];

        if (!text_format(path, sizeof(path), "%s/%s", directory, name))
                return err_set(err, -EINVAL, "--data: the directory's name is too long");
        return idx_read(path, rank, ret, err);
}

static int keep_labels(struct dataset_samples *s, const struct idx *labels, struct err *err)
{
        s->count = labels->sizes[0];
        s->labels = calloc(s->count, sizeof(*s->labels));
        if (s->labels == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu labels", s->count);
        for (size_t i = 0; i < s->count; i++)
                s->labels[i] = labels->values[i];
        return 0;
}

/* Takes the images over, resized if that was asked for. */
static int keep_images(struct dataset *d, struct dataset_samples *s, struct idx *images, struct shape *shape,
                       struct err *err)
{
        size_t height = images->sizes[1], width = images->sizes[2];

        *shape = (struct shape){ height, width, 1 };
        if (d->preprocess.height > 0)
                *shape = (struct shape){ d->preprocess.height, d->preprocess.width, 1 };
        if (shape->height == height && shape->width == width) {
                s->pixels = TAKE(images->values);
                return 0;
        }
        s->pixels = calloc(s->count, shape_size(shape));
        if (s->pixels == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu images of %zu x %zu", s->count, shape->height,
                               shape->width);
        for (size_t i = 0; i < s->count; i++)
                preprocess_resize(images->values + i * images->item_bytes, height, width, 1,
                                  s->pixels + i * shape_size(shape), shape->height, shape->width);
        return 0;
}

static int read_idx_split(struct dataset *d, const char *directory, enum dataset_split which,
                          struct shape *shape, struct err *err)
{
        static const char *const names[DATASET_SPLITS][2] = {
                { "train-images-idx3-ubyte", "train-labels-idx1-ubyte" },
                { "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte" },
        };
        struct idx images = { 0 }, labels = { 0 };
        int r = read_file(directory, names[which][0], 3, &images, err);

        if (r == 0)
                r = read_file(directory, names[which][1], 1, &labels, err);
        if (r == 0 && images.sizes[0] != labels.sizes[0])
                r = err_set(err, -EINVAL,
                            "file '%s/%s' has %zu labels, '%s' has %zu images: they must be equal", directory,
                            names[which][1], labels.sizes[0], names[which][0], images.sizes[0]);
        if (r == 0)
                r = keep_labels(&d->splits[which], &labels, err);
        if (r == 0)
                r = keep_images(d, &d->splits[which], &images, shape, err);
        idx_free(&images);
        idx_free(&labels);
        return r;
}

static int count_classes(struct dataset *d, const char *directory, struct err *err)
{
        const struct dataset_samples *train = &d->splits[DATASET_TRAIN], *test = &d->splits[DATASET_TEST];
        size_t classes = 0;

        for (size_t i = 0; i < train->count; i++)
                if ((size_t) train->labels[i] >= classes)
                        classes = (size_t) train->labels[i] + 1;
        for (size_t i = 0; i < test->count; i++)
                if ((size_t) test->labels[i] >= classes)
                        return err_set(err, -EINVAL,
                                       "directory '%s': test label %zu is %d, training labels end at %zu",
                                       directory, i, test->labels[i], classes - 1);
        d->size.classes = classes;
        return 0;
}

int dataset_read_idx(struct dataset *d, const char *directory, struct err *err)
{
        struct shape shapes[DATASET_SPLITS] = { 0 };

        d->form = "idx";
        if (seen_add(&d->seen, "train") < 0 || seen_add(&d->seen, "t10k") < 0)
                return err_set(err, -ENOMEM, "no memory for the files' names");
        for (int split = 0; split < DATASET_SPLITS; split++) {
                int r = read_idx_split(d, directory, (enum dataset_split) split, &shapes[split], err);

                if (r < 0)
                        return r;
        }
        if (memcmp(&shapes[0], &shapes[1], sizeof(shapes[0])) != 0)
                return err_set(
                        err, -EINVAL, "directory '%s': training images are %zu x %zu, test images %zu x %zu",
                        directory, shapes[0].height, shapes[0].width, shapes[1].height, shapes[1].width);
        d->size.input = shapes[0];
        return count_classes(d, directory, err);
}

static void choose_values(struct dataset *d)
{
        const struct dataset_samples *train = &d->splits[DATASET_TRAIN];
        size_t total = train->count * shape_size(&d->size.input), counts[256] = { 0 };
        double mean = 0, square = 0, deviation;

        for (size_t i = 0; i < total; i++)
                counts[train->pixels[i]]++;
        for (int v = 0; v < 256; v++) {
                mean += (double) v * (double) counts[v] / (double) total;
                square += (double) v * v * (double) counts[v] / (double) total;
        }
        deviation = sqrt(square - mean * mean);
        for (int v = 0; v < 256; v++)
                d->value[v] = d->preprocess.scale
                                      ? (float) v / 255.0F
                                      : (float) ((v - mean) / (deviation > 0 ? 3 * deviation : 1));
}

static bool is_directory(const char *directory, const char *name)
{
        char path[4096];
        struct stat facts;

        return text_format(path, sizeof(path), "%s/%s", directory, name) && stat(path, &facts) == 0 &&
               S_ISDIR(facts.st_mode);
}

int dataset_open(const char *directory, bool text, const struct preprocess *p, uint64_t seed,
                 const struct seen *later, struct dataset **ret, struct err *err)
{
        CLEANUP(dataset_free_p) struct dataset *d = calloc(1, sizeof(*d));
        int r;

        if (d == NULL)
                return err_set(err, -ENOMEM, "no memory for the data set");
        d->preprocess = *p;
        d->seed = seed;
        d->later = later;
        if (!is_directory(directory, "."))
                return err_set(err, -ENOENT, "--data: no directory '%s'", directory);
        if (text)
                r = dataset_read_text(d, directory, err);
        else if (is_directory(directory, "train"))
                r = dataset_read_raw(d, directory, err);
        else
                r = dataset_read_idx(d, directory, err);
        if (r < 0)
                return r;
        if (!text)
                choose_values(d);
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

/* @places: of samples whose tokens follow one another; NULL = samples overlap, and all are here */
static void load_text(const struct dataset_samples *s, const uint32_t *places, const uint32_t *ids,
                      size_t count, float *x, int32_t *labels)
{
        for (size_t i = 0; i < count; i++) {
                const uint32_t *tokens =
                        s->tokens + (places != NULL ? (size_t) places[ids[i]] * TEXT_SAMPLE : ids[i]);

                for (size_t k = 0; k < TEXT_CONTEXT; k++)
                        x[i * TEXT_CONTEXT + k] = (float) tokens[k];
                labels[i] = (int32_t) tokens[TEXT_CONTEXT];
        }
}

static void augment(const struct dataset *d, uint64_t epoch, const uint32_t *ids, size_t count, float *x)
{
        const struct shape *s = &d->size.input;
        size_t floats = shape_size(s);
        CLEANUP(free_p) float *room = calloc(floats, sizeof(*room));

        for (size_t i = 0; room != NULL && i < count; i++)
                preprocess_augment(&d->preprocess, d->seed, epoch, ids[i], s->height, s->width, s->channels,
                                   d->value[0], x + i * floats, room);
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
        return split == DATASET_TRAIN && d->places != NULL ? d->places[id] : id;
}

void dataset_load(const struct dataset *d, enum dataset_split split, uint64_t epoch, const uint32_t *ids,
                  size_t count, float *x, int32_t *labels)
{
        const struct dataset_samples *s = &d->splits[split];
        size_t floats = shape_size(&d->size.input);

        if (s->tokens != NULL) {
                load_text(s, split == DATASET_TRAIN ? d->places : NULL, ids, count, x, labels);
                return;
        }
        for (size_t i = 0; i < count; i++) {
                size_t place = place_of(d, split, ids[i]);

                if (i + FETCH_AHEAD < count)
                        fetch(s->pixels + place_of(d, split, ids[i + FETCH_AHEAD]) * floats,
                              floats < FETCH_MAX ? floats : FETCH_MAX);
                values_of(d->value, s->pixels + place * floats, floats, x + i * floats);
                labels[i] = s->labels[place];
        }
        if (split == DATASET_TRAIN && (d->preprocess.flip > 0 || d->preprocess.crop > 0))
                augment(d, epoch, ids, count, x);
}
