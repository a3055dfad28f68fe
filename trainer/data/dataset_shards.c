/* Raw shards: train-*-images-idx3-ubyte with train-*-labels-idx1-ubyte, and test-* alike, not compressed: IDX
 * files that are read where a sample lies. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trainer/data/dataset.h"
#include "trainer/data/idx.h"

#define IMAGES       "-images-idx3-ubyte"
#define LABELS       "-labels-idx1-ubyte"
#define HEADER_BYTES 16

static int check_shape(struct dataset *d, const size_t *sizes, struct err *err)
{
        struct shape *s = &d->stored;

        if (s->height == 0)
                *s = (struct shape){ sizes[1], sizes[2], 1 };
        if (sizes[1] != s->height || sizes[2] != s->width)
                return err_set(err, -EINVAL, "images of %zu x %zu, those before are %zu x %zu", sizes[1],
                               sizes[2], s->height, s->width);
        return 0;
}

static int add_labels(struct dataset_samples *s, const struct idx *labels, struct err *err)
{
        int32_t *more = reallocarray(s->labels, s->count + labels->sizes[0], sizeof(*more));

        if (more == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu labels", s->count + labels->sizes[0]);
        s->labels = more;
        for (size_t i = 0; i < labels->sizes[0]; i++)
                s->labels[s->count++] = labels->values[i];
        return 0;
}

/* @path: of the images; @labels: of the same shard */
static int read_shard(struct dataset *d, enum dataset_split split, const char *path, const struct idx *labels,
                      struct err *err)
{
        struct sample_files *files = &d->files[split];
        uint8_t header[HEADER_BYTES];
        size_t sizes[3];
        int file = sample_files_add(files, path, err), r;

        if (file < 0)
                return file;
        if (pread(files->files[file].fd, header, sizeof(header), 0) != sizeof(header))
                return err_set(err, -EINVAL, "file '%s': cut short: no whole IDX header", path);
        r = idx_header(header, files->files[file].size_bytes, 3, sizes, err);
        if (r == 0)
                r = check_shape(d, sizes, err);
        if (r < 0)
                return err_wrap(err, r, "file '%s'", path);
        if (sizes[0] != labels->sizes[0])
                return err_set(err, -EINVAL, "file '%s' has %zu images, its labels are %zu", path, sizes[0],
                               labels->sizes[0]);
        for (size_t i = 0; r == 0 && i < sizes[0]; i++)
                r = sample_files_note(files, file, HEADER_BYTES + i * sizes[1] * sizes[2],
                                      sizes[1] * sizes[2], err);
        return r < 0 ? r : add_labels(&d->splits[split], labels, err);
}

static int read_split(struct dataset *d, const char *directory, enum dataset_split split, struct err *err)
{
        char **names, path[4096], other[4096];
        size_t count =
                sample_files_list(directory, split == DATASET_TRAIN ? "train-" : "test-", IMAGES, &names);
        int r = 0;

        for (size_t i = 0; r == 0 && i < count; i++) {
                struct idx labels = { 0 };

                if (!text_format(path, sizeof(path), "%s/%s", directory, names[i]) ||
                    !text_format(other, sizeof(other), "%.*s" LABELS, (int) (strlen(path) - strlen(IMAGES)),
                                 path))
                        r = err_set(err, -EINVAL, "--data: the directory's name is too long");
                if (r == 0)
                        r = idx_read(other, 1, &labels, err);
                if (r == 0)
                        r = read_shard(d, split, path, &labels, err);
                idx_free(&labels);
        }
        sample_files_list_free(names, count);
        if (r == 0 && d->splits[split].count == 0)
                r = err_set(err, -EINVAL, "directory '%s' has no samples in %s-*" IMAGES, directory,
                            split == DATASET_TRAIN ? "train" : "test");
        return r;
}

static int read_shards(struct dataset *d, const char *directory, struct err *err)
{
        for (int split = 0; split < DATASET_SPLITS; split++) {
                const struct dataset_samples *s = &d->splits[split];

                if (read_split(d, directory, (enum dataset_split) split, err) < 0)
                        return err->code;
                for (size_t i = 0; i < s->count; i++)
                        if ((size_t) s->labels[i] >= d->size.classes)
                                d->size.classes = (size_t) s->labels[i] + 1;
        }
        d->size.input = d->stored;
        if (d->preprocess.height > 0)
                d->size.input = (struct shape){ d->preprocess.height, d->preprocess.width, 1 };
        return 0;
}

static int fetch_shards(const struct dataset *d, enum dataset_split split, size_t i, uint8_t *pixels,
                        struct err *err)
{
        const struct shape *from = &d->stored, *to = &d->size.input;
        CLEANUP(free_p) uint8_t *stored = NULL;

        if (from->height == to->height && from->width == to->width)
                return sample_files_read(&d->files[split], i, pixels, err);
        stored = malloc(shape_size(from));
        if (stored == NULL)
                return err_set(err, -ENOMEM, "no memory for an image of %zu x %zu", from->height,
                               from->width);
        if (sample_files_read(&d->files[split], i, stored, err) < 0)
                return err->code;
        preprocess_resize(stored, from->height, from->width, 1, pixels, to->height, to->width);
        return 0;
}

const struct dataset_form dataset_shards = { .read = read_shards, .fetch = fetch_shards };
