/* New IDX files in the directory of a run that goes on. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"
#include "core/text.h"
#include "trainer/dataset.h"
#include "trainer/idx.h"

#define FILES_MAX 1024
#define IMAGES    "-images-idx3-ubyte"

/* The name before -images-idx3-ubyte[.gz]. Return: false if it is another file. */
static bool stem_of(const char *file, char *stem, size_t stem_bytes)
{
        const char *end = strstr(file, IMAGES);

        if (end == NULL || end == file || (strcmp(end, IMAGES) != 0 && strcmp(end, IMAGES ".gz") != 0))
                return false;
        return text_format(stem, stem_bytes, "%.*s", (int) (end - file), file);
}

static bool known(const struct dataset *d, const char *stem)
{
        if (strcmp(stem, "train") == 0 || strcmp(stem, "t10k") == 0)
                return true;
        for (size_t i = 0; i < d->joined_count; i++)
                if (strcmp(d->joined[i], stem) == 0)
                        return true;
        return false;
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

static int append(struct dataset *d, const struct idx *images, const struct idx *labels, struct err *err)
{
        struct split *s = &d->splits[DATASET_TRAIN];
        const struct shape *shape = &d->size.input;
        size_t total = s->count + images->sizes[0], bytes = shape_size(shape);
        uint8_t *pixels = reallocarray(s->pixels, total, bytes);
        int32_t *numbers;

        if (pixels != NULL)
                s->pixels = pixels;
        numbers = reallocarray(s->labels, total, sizeof(*numbers));
        if (numbers != NULL)
                s->labels = numbers;
        if (pixels == NULL || numbers == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu samples", total);
        for (size_t i = 0; i < images->sizes[0]; i++) {
                preprocess_resize(images->values + i * images->item_bytes, images->sizes[1], images->sizes[2],
                                  1, s->pixels + (s->count + i) * bytes, shape->height, shape->width);
                s->labels[s->count + i] = labels->values[i];
        }
        return 0;
}

/* Return: samples added; 0 when the file is not whole yet, or never will fit (said once). */
static size_t join(struct dataset *d, const char *directory, const char *stem)
{
        struct idx images = { 0 }, labels = { 0 };
        struct err err = { 0 };
        char path[4096];
        size_t added = 0;
        int r = text_format(path, sizeof(path), "%s/%s" IMAGES, directory, stem)
                        ? idx_read(path, 3, &images, &err)
                        : -EINVAL;

        if (r == 0 && text_format(path, sizeof(path), "%s/%s-labels-idx1-ubyte", directory, stem))
                r = idx_read(path, 1, &labels, &err);
        if (r == 0) { /* both are whole: this is the one time that they are looked at */
                (void) text_copy(d->joined[d->joined_count++], sizeof(d->joined[0]), stem);
                r = check(d, &images, &labels, &err);
                if (r == 0)
                        r = append(d, &images, &labels, &err);
                if (r < 0)
                        (void) fprintf(stderr, "remuda-train: new file '%s/%s" IMAGES "' left out: %s\n",
                                       directory, stem, err.msg);
                added = r == 0 ? images.sizes[0] : 0;
                d->splits[DATASET_TRAIN].count += added;
        }
        idx_free(&images);
        idx_free(&labels);
        return added;
}

static int is_visible(const struct dirent *entry)
{
        return entry->d_name[0] != '.';
}

size_t dataset_poll(struct dataset *d, const char *directory)
{
        struct dirent **entries = NULL;
        int count = strcmp(d->form, "idx") == 0 ? scandir(directory, &entries, is_visible, alphasort) : 0;
        size_t added = 0;
        char stem[64];

        if (d->joined == NULL)
                d->joined = calloc(FILES_MAX, sizeof(*d->joined));
        for (int i = 0; i < count; i++) {
                if (d->joined != NULL && d->joined_count < FILES_MAX &&
                    stem_of(entries[i]->d_name, stem, sizeof(stem)) && !known(d, stem))
                        added += join(d, directory, stem);
                free(entries[i]);
        }
        free(entries);
        return added;
}
