#include "trainer/dataset.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "core/cleanup.h"
#include "core/text.h"
#include "trainer/idx.h"

struct dataset {
        struct idx images[DATASET_SPLITS], labels[DATASET_SPLITS];
        struct model_size size;
        float value[256]; /* pixel -> (pixel - mean) / deviation over the training images */
};

void dataset_free(struct dataset *d)
{
        if (d == NULL)
                return;
        for (int split = 0; split < DATASET_SPLITS; split++) {
                idx_free(&d->images[split]);
                idx_free(&d->labels[split]);
        }
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

static int read_split(struct dataset *d, const char *directory, enum dataset_split split, struct err *err)
{
        static const char *const names[DATASET_SPLITS][2] = {
                { "train-images-idx3-ubyte", "train-labels-idx1-ubyte" },
                { "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte" },
        };
        struct idx *images = &d->images[split], *labels = &d->labels[split];
        int r = read_file(directory, names[split][0], 3, images, err);

        if (r == 0)
                r = read_file(directory, names[split][1], 1, labels, err);
        if (r < 0)
                return r;
        if (images->sizes[0] != labels->sizes[0])
                return err_set(
                        err, -EINVAL, "file '%s/%s' has %zu labels, '%s' has %zu images: they must be equal",
                        directory, names[split][1], labels->sizes[0], names[split][0], images->sizes[0]);
        return 0;
}

static int check_labels(struct dataset *d, const char *directory, struct err *err)
{
        size_t classes = 0;

        for (size_t i = 0; i < d->labels[DATASET_TRAIN].sizes[0]; i++)
                if (d->labels[DATASET_TRAIN].values[i] >= classes)
                        classes = d->labels[DATASET_TRAIN].values[i] + 1U;
        for (size_t i = 0; i < d->labels[DATASET_TEST].sizes[0]; i++)
                if (d->labels[DATASET_TEST].values[i] >= classes)
                        return err_set(err, -EINVAL,
                                       "directory '%s': test label %zu is %u, training labels end at %zu",
                                       directory, i, d->labels[DATASET_TEST].values[i], classes - 1);
        d->size.classes = classes;
        return 0;
}

static void normalise(struct dataset *d)
{
        const struct idx *images = &d->images[DATASET_TRAIN];
        size_t total = images->sizes[0] * images->item_bytes, counts[256] = { 0 };
        double mean = 0, square = 0, deviation;

        for (size_t i = 0; i < total; i++)
                counts[images->values[i]]++;
        for (int v = 0; v < 256; v++) {
                mean += (double) v * (double) counts[v] / (double) total;
                square += (double) v * v * (double) counts[v] / (double) total;
        }
        deviation = sqrt(square - mean * mean);
        for (int v = 0; v < 256; v++)
                d->value[v] = (float) ((v - mean) / (deviation > 0 ? deviation : 1));
}

int dataset_open(const char *directory, struct dataset **ret, struct err *err)
{
        CLEANUP(dataset_free_p) struct dataset *d = calloc(1, sizeof(*d));
        int r;

        if (d == NULL)
                return err_set(err, -ENOMEM, "no memory for the data set");
        for (int split = 0; split < DATASET_SPLITS; split++) {
                r = read_split(d, directory, (enum dataset_split) split, err);
                if (r < 0)
                        return r;
        }
        for (size_t i = 1; i < 3; i++)
                if (d->images[DATASET_TRAIN].sizes[i] != d->images[DATASET_TEST].sizes[i])
                        return err_set(err, -EINVAL,
                                       "directory '%s': training images are %zu x %zu, test images %zu x %zu",
                                       directory, d->images[DATASET_TRAIN].sizes[1],
                                       d->images[DATASET_TRAIN].sizes[2], d->images[DATASET_TEST].sizes[1],
                                       d->images[DATASET_TEST].sizes[2]);
        r = check_labels(d, directory, err);
        if (r < 0)
                return r;
        d->size.input =
                (struct shape){ d->images[DATASET_TRAIN].sizes[1], d->images[DATASET_TRAIN].sizes[2], 1 };
        normalise(d);
        *ret = TAKE(d);
        return 0;
}

size_t dataset_count(const struct dataset *d, enum dataset_split split)
{
        return d->labels[split].sizes[0];
}

struct model_size dataset_size(const struct dataset *d)
{
        return d->size;
}

void dataset_load(const struct dataset *d, enum dataset_split split, const uint32_t *ids, size_t count,
                  float *x, int32_t *labels)
{
        const struct idx *images = &d->images[split];

        for (size_t i = 0; i < count; i++, x += images->item_bytes) {
                const uint8_t *pixels = images->values + ids[i] * images->item_bytes;

                for (size_t k = 0; k < images->item_bytes; k++)
                        x[k] = d->value[pixels[k]];
                labels[i] = d->labels[split].values[ids[i]];
        }
}
