/* New files in the directory of a run that goes on. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "trainer/data/dataset.h"
#include "trainer/data/idx.h"

#define IMAGES     "-images-idx3-ubyte"
#define NAME_BYTES 1024

/* Return: false if it is another file. */
static bool stem_of(const char *file, char *stem, size_t stem_bytes)
{
        const char *end = strstr(file, IMAGES);

        if (end == NULL || end == file || (strcmp(end, IMAGES) != 0 && strcmp(end, IMAGES ".gz") != 0))
                return false;
        return text_format(stem, stem_bytes, "%.*s", (int) (end - file), file);
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
        struct dataset_samples *s = &d->splits[DATASET_TRAIN];
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
        s->count = total;
        return 0;
}

int dataset_join_idx(struct dataset *d, const char *directory, const char *name, struct err *err)
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
                        r = append(d, &images, &labels, err);
        }
        idx_free(&images);
        idx_free(&labels);
        return r;
}

static int join(struct dataset *d, const char *directory, const char *name, struct err *err)
{
        if (strcmp(d->form, "idx") == 0)
                return dataset_join_idx(d, directory, name, err);
        return strcmp(d->form, "raw") == 0 ? dataset_join_raw(d, directory, name, err)
                                           : dataset_join_text(d, directory, name, err);
}

int dataset_join(struct dataset *d, const char *directory, const char *name, struct err *err)
{
        int r = join(d, directory, name, err);

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
        r = join(d, directory, name, &err);
        if (r == -EAGAIN || seen_add(&d->seen, name) < 0)
                return; /* another time */
        if (r < 0)
                (void) fprintf(stderr, "remuda-train: new file '%s/%s' left out: %s\n", directory, name,
                               err.msg);
        else if (joined != NULL)
                text_printf(joined, "%s\n", name);
}

static int is_visible(const struct dirent *entry)
{
        return entry->d_name[0] != '.';
}

/* Tries the files of DIRECTORY/PART. */
static void try_files(struct dataset *d, const char *directory, const char *part, struct text *joined)
{
        bool idx = strcmp(d->form, "idx") == 0, raw = strcmp(d->form, "raw") == 0;
        struct dirent **entries = NULL;
        char path[4096], name[NAME_BYTES];
        int count = text_format(path, sizeof(path), "%s/%s", directory, part)
                            ? scandir(path, &entries, is_visible, alphasort)
                            : 0;

        for (int i = 0; i < count; i++) {
                const char *file = entries[i]->d_name;
                bool fits = idx   ? stem_of(file, name, sizeof(name))
                            : raw ? (text_ends_with(file, ".pgm") || text_ends_with(file, ".ppm")) &&
                                            text_format(name, sizeof(name), "%s/%s", part, file)
                                  : text_copy(name, sizeof(name), file);

                if (fits && strchr(name, '\n') == NULL)
                        try_name(d, directory, name, joined);
                free(entries[i]);
        }
        free(entries);
}

size_t dataset_poll(struct dataset *d, const char *directory, struct text *joined)
{
        size_t before = dataset_count(d, DATASET_TRAIN);
        char part[128];

        if (strcmp(d->form, "raw") != 0)
                try_files(d, directory, ".", joined);
        else
                for (size_t i = 0; i < d->size.classes; i++)
                        if (text_format(part, sizeof(part), "train/%s", d->classes[i]))
                                try_files(d, directory, part, joined);
        return dataset_count(d, DATASET_TRAIN) - before;
}
