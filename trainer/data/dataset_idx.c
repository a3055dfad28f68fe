/* IDX: the four files of MNIST and its kin; more training files of that form may join. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trainer/data/dataset.h"
#include "trainer/data/idx.h"

#define IMAGES "-images-idx3-ubyte"

static int read_file(const char *directory, const char *name, size_t rank, struct idx *ret, struct err *err)
{
        char path[4096];

        if (!text_format(path, sizeof(path), "%s/%s", directory, name))
                return err_set(err, -EINVAL, "--data: the directory's name is too long");
        return idx_read(path, rank, ret, err);
}

/* Takes images, resized where they have another shape, and labels over, behind those that are there. */
static int append(struct dataset_samples *s, const struct shape *shape, struct idx *images,
                  const struct idx *labels, struct err *err)
{
        size_t total = s->count + images->sizes[0], bytes = shape_size(shape);
        bool as_is =
                s->pixels == NULL && images->sizes[1] == shape->height && images->sizes[2] == shape->width;

        if (as_is)
                s->pixels = TAKE(images->values);
        if (dataset_grow(s, total, bytes, err) < 0)
                return err->code;
        for (size_t i = 0; i < labels->sizes[0]; i++, s->count++) {
                if (!as_is)
                        preprocess_resize(images->values + i * images->item_bytes, images->sizes[1],
                                          images->sizes[2], 1, s->pixels + s->count * bytes, shape->height,
                                          shape->width);
                s->labels[s->count] = labels->values[i];
        }
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
        if (r == 0) {
                *shape = (struct shape){ images.sizes[1], images.sizes[2], 1 };
                if (d->preprocess.height > 0)
                        *shape = (struct shape){ d->preprocess.height, d->preprocess.width, 1 };
                r = append(&d->splits[which], shape, &images, &labels, err);
        }
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

static int read_idx(struct dataset *d, const char *directory, struct err *err)
{
        struct shape shapes[DATASET_SPLITS] = { 0 };

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

/* What comes before -images-idx3-ubyte. */
static bool name_of(const char *part, const char *file, char *name, size_t name_bytes)
{
        const char *end = strstr(file, IMAGES);

        (void) part;
        if (end == NULL || end == file || (strcmp(end, IMAGES) != 0 && strcmp(end, IMAGES ".gz") != 0))
                return false;
        return text_format(name, name_bytes, "%.*s", (int) (end - file), file);
}

static int check(const struct dataset *d, const struct idx *images, const struct idx *labels, struct err *err)
{
        if (images->sizes[0] != labels->sizes[0])
                return err_set(err, -EINVAL, "%zu images and %zu labels", images->sizes[0], labels->sizes[0]);
        if (d->preprocess.height == 0 &&
            (images->sizes[1] != d->size.input.height || images->sizes[2] != d->size.input.width))
                return err_set(err, -EINVAL, "images of %zu x %zu, %zu x %zu are wanted", images->sizes[1],
                               images->sizes[2], d->size.input.height, d->size.input.width);
        for (size_t i = 0; i < labels->sizes[0]; i++)
                if (labels->values[i] >= d->size.classes)
                        return err_set(err, -EINVAL, "label %u of sample %zu: the model knows %zu classes",
                                       labels->values[i], i, d->size.classes);
        return 0;
}

static int join_idx(struct dataset *d, const char *directory, const char *name, struct err *err)
{
        struct idx images = { 0 }, labels = { 0 };
        char path[4096];
        int r = -EINVAL;

        if (text_format(path, sizeof(path), "%s/%s" IMAGES, directory, name))
                r = idx_read(path, 3, &images, err);
        if (r == 0 && text_format(path, sizeof(path), "%s/%s-labels-idx1-ubyte", directory, name))
                r = idx_read(path, 1, &labels, err);
        if (r < 0) {
                r = -EAGAIN;
        } else {
                r = check(d, &images, &labels, err);
                if (r == 0)
                        r = append(&d->splits[DATASET_TRAIN], &d->size.input, &images, &labels, err);
        }
        idx_free(&images);
        idx_free(&labels);
        return r;
}

const struct dataset_form dataset_idx = { .read = read_idx, .join = join_idx, .name_of = name_of };
