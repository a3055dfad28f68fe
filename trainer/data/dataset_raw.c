/* Raw images: train/CLASS/NAME.pgm and test/CLASS/NAME.pgm, or .ppm, .jpg, .png. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/read_file.h"
#include "trainer/data/dataset.h"
#include "trainer/data/image.h"
#include "trainer/data/pnm.h"

#define CLASSES_MAX     1000
#define IMAGE_BYTES_MAX ((size_t) 1 << 28)

struct reader {
        struct dataset *d;
        struct dataset_samples *split;
        size_t room; /* samples that fit so far */
};

static int make_room(struct reader *r, struct err *err)
{
        size_t room = r->room > 0 ? 2 * r->room : 64;

        if (r->split->count < r->room)
                return 0;
        if (dataset_grow(r->split, room, shape_size(&r->d->size.input), err) < 0)
                return err->code;
        r->room = room;
        return 0;
}

/* The first image decides what `resize` leaves open. */
static int check_shape(struct dataset *d, const struct image *image, struct err *err)
{
        struct shape *s = &d->size.input;

        if (s->height == 0)
                *s = (struct shape){ d->preprocess.height > 0 ? d->preprocess.height : image->height,
                                     d->preprocess.width > 0 ? d->preprocess.width : image->width,
                                     image->channels };
        if (image->channels != s->channels)
                return err_set(err, -EINVAL, "%zu channels, the first image has %zu", image->channels,
                               s->channels);
        if (d->preprocess.height == 0 && (image->height != s->height || image->width != s->width))
                return err_set(
                        err, -EINVAL,
                        "%zu x %zu, the first image is %zu x %zu: --preprocess resize:HxW makes them equal",
                        image->height, image->width, s->height, s->width);
        return 0;
}

static uint8_t *next_place(const struct reader *r)
{
        return r->split->pixels + r->split->count * shape_size(&r->d->size.input);
}

/* Row by row: it may be larger than memory. */
static int read_pnm(struct reader *r, FILE *f, struct err *err)
{
        const struct shape *s = &r->d->size.input;
        struct pnm image;

        if (pnm_header(f, &image, err) < 0)
                return -EAGAIN;
        if (check_shape(r->d, &(struct image){ image.height, image.width, image.channels }, err) < 0 ||
            make_room(r, err) < 0)
                return err->code;
        return pnm_shrink(f, &image, s->height, s->width, next_place(r), err) < 0 ? -EAGAIN : 0;
}

static int read_encoded(struct reader *r, const char *path, struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        const struct shape *s = &r->d->size.input;
        struct image image;
        size_t size_bytes = 0;

        if (read_file(path, IMAGE_BYTES_MAX, &bytes, &size_bytes, err) < 0 ||
            image_header((const uint8_t *) bytes, size_bytes, &image, err) < 0)
                return -EAGAIN;
        if (s->height > 0)
                image.channels = s->channels; /* grey becomes colour, and colour grey */
        if (check_shape(r->d, &image, err) < 0 || make_room(r, err) < 0)
                return err->code;
        return image_decode((const uint8_t *) bytes, size_bytes, s->height, s->width, s->channels,
                            next_place(r), err) < 0
                       ? -EAGAIN
                       : 0;
}

/* Return: 0; -EINVAL: it does not fit the others; -EAGAIN: it is no whole image. */
static int read_image(struct reader *r, const char *path, size_t label, struct err *err)
{
        CLEANUP(fclose_p) FILE *f = fopen(path, "re");
        int result;

        if (f == NULL)
                return err_set(err, -EAGAIN, "%m");
        result = text_ends_with(path, ".pgm") || text_ends_with(path, ".ppm") ? read_pnm(r, f, err)
                                                                              : read_encoded(r, path, err);
        if (result < 0)
                return result;
        r->split->labels[r->split->count++] = (int32_t) label;
        return 0;
}

/* Is train/CLASS/NAME to join later? */
static bool joins_later(const struct dataset *d, size_t label, const char *file)
{
        char name[512];

        return d->later != NULL && text_format(name, sizeof(name), "train/%s/%s", d->classes[label], file) &&
               seen_has(d->later, name);
}

/* Remembers train/CLASS/NAME as used. */
static int note_name(struct dataset *d, size_t label, const char *file, struct err *err)
{
        char name[512];

        if (!text_format(name, sizeof(name), "train/%s/%s", d->classes[label], file) ||
            seen_add(&d->seen, name) < 0)
                return err_set(err, -ENOMEM, "no memory for the files' names");
        return 0;
}

static int read_class(struct reader *r, const char *directory, size_t label, struct err *err)
{
        struct dirent **entries = NULL;
        int count = scandir(directory, &entries, dataset_is_visible, alphasort), result = 0;
        char path[4096];

        for (int i = 0; i < count; i++) {
                const char *name = entries[i]->d_name;

                if (result == 0 && image_has_name(name) &&
                    !(r->split == &r->d->splits[DATASET_TRAIN] && joins_later(r->d, label, name))) {
                        if (!text_format(path, sizeof(path), "%s/%s", directory, name))
                                result = err_set(err, -EINVAL, "directory '%s': a name in it is too long",
                                                 directory);
                        else if (read_image(r, path, label, err) < 0)
                                result = err_wrap(err, -EINVAL, "file '%s'", path);
                        else if (r->split == &r->d->splits[DATASET_TRAIN])
                                result = note_name(r->d, label, name, err);
                }
                free(entries[i]);
        }
        free(entries);
        return result;
}

static size_t find_class(const struct dataset *d, const char *name)
{
        for (size_t i = 0; i < d->size.classes; i++)
                if (strcmp(d->classes[i], name) == 0)
                        return i;
        return SIZE_MAX;
}

static int list_classes(struct dataset *d, const char *directory, struct err *err)
{
        struct dirent **entries = NULL;
        int count = scandir(directory, &entries, dataset_is_visible, alphasort);

        d->classes = calloc(CLASSES_MAX, sizeof(*d->classes));
        for (int i = 0; i < count; i++) {
                if (d->classes != NULL && d->size.classes < CLASSES_MAX &&
                    text_copy(d->classes[d->size.classes], sizeof(d->classes[0]), entries[i]->d_name))
                        d->size.classes++;
                free(entries[i]);
        }
        free(entries);
        return d->size.classes > 0
                       ? 0
                       : err_set(err, -EINVAL, "directory '%s' has no directories: one a class is wanted",
                                 directory);
}

static int read_split(struct dataset *d, const char *directory, enum dataset_split which, struct err *err)
{
        struct reader r = { .d = d, .split = &d->splits[which] };
        const char *name = which == DATASET_TRAIN ? "train" : "test";
        char path[4096];

        if (!text_format(path, sizeof(path), "%s/%s", directory, name))
                return err_set(err, -EINVAL, "--data: the directory's name is too long");
        if (which == DATASET_TRAIN && list_classes(d, path, err) < 0)
                return err->code;
        for (size_t i = 0; i < d->size.classes; i++) {
                if (!text_format(path, sizeof(path), "%s/%s/%s", directory, name, d->classes[i]))
                        return err_set(err, -EINVAL, "--data: the directory's name is too long");
                if (find_class(d, d->classes[i]) == i && read_class(&r, path, i, err) < 0)
                        return err->code;
        }
        return r.split->count > 0
                       ? 0
                       : err_set(err, -EINVAL,
                                 "directory '%s/%s' has no .pgm, .ppm, .jpg or .png images in the classes' "
                                 "directories",
                                 directory, name);
}

static int read_raw(struct dataset *d, const char *directory, struct err *err)
{
        for (int split = 0; split < DATASET_SPLITS; split++) {
                int r = read_split(d, directory, (enum dataset_split) split, err);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int join_raw(struct dataset *d, const char *directory, const char *name, struct err *err)
{
        struct reader r = { .d = d,
                            .split = &d->splits[DATASET_TRAIN],
                            .room = d->splits[DATASET_TRAIN].count };
        const char *rest = text_starts_with(name, "train/") ? name + strlen("train/") : name;
        char path[4096], class[64];
        size_t length = strcspn(rest, "/"), label;

        if (length >= sizeof(class) || !text_format(path, sizeof(path), "%s/%s", directory, name))
                return err_set(err, -EINVAL, "its name is too long");
        memcpy(class, rest, length);
        class[length] = '\0';
        label = find_class(d, class);
        if (label == SIZE_MAX)
                return err_set(err, -EINVAL, "no class '%s' was there at the beginning", class);
        return read_image(&r, path, label, err);
}

static bool name_of(const char *part, const char *file, char *name, size_t name_bytes)
{
        return image_has_name(file) && text_format(name, name_bytes, "%s/%s", part, file);
}

const struct dataset_form dataset_raw = {
        .read = read_raw, .join = join_raw, .name_of = name_of, .by_class = true
};
