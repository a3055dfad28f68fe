/* Tar shards, as webdataset has them: train-*.tar and test-*.tar, of members KEY.EXTENSION; those of one
 * sample follow each other. An image and KEY.cls, its class as a number, are used, other members passed over.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "trainer/data/dataset.h"
#include "trainer/data/image.h"
#include "trainer/data/tar.h"

#define CLASSES_MAX 65536

struct sample { /* of which the members are being read */
        char key[TAR_NAME_BYTES];
        uint64_t offset, size_bytes;
        int64_t class;
        bool has_image, has_class;
};

struct reader {
        struct dataset *d;
        enum dataset_split split;
        size_t room; /* labels that fit so far */
        int file;
        const char *path;
};

/* KEY.EXTENSION: the first dot of the last part of the name ends the key (webdataset's rule). */
static const char *split_name(const char *name, char *key)
{
        const char *slash = strrchr(name, '/'), *dot = strchr(slash != NULL ? slash : name, '.');

        if (dot == NULL)
                return "";
        memcpy(key, name, (size_t) (dot - name));
        key[dot - name] = '\0';
        return dot;
}

static int read_class(const struct reader *r, const struct tar_member *m, int64_t *ret, struct err *err)
{
        char digits[24] = "";
        size_t count = m->size_bytes < sizeof(digits) - 1 ? (size_t) m->size_bytes : sizeof(digits) - 1;
        ssize_t got = pread(r->d->files[r->split].files[r->file].fd, digits, count, (off_t) m->offset);

        digits[got > 0 ? got : 0] = '\0';
        digits[strcspn(digits, "\r\n ")] = '\0';
        if (text_parse_int64(digits, ret) < 0 || *ret < 0 || *ret >= CLASSES_MAX)
                return err_set(err, -EINVAL, "file '%s', byte %llu: member '%.100s' is no class from 0 to %d",
                               r->path, (unsigned long long) m->offset, m->name, CLASSES_MAX - 1);
        return 0;
}

static int end_sample(struct reader *r, struct sample *s, struct err *err)
{
        struct dataset_samples *samples = &r->d->splits[r->split];

        if (!s->has_image && !s->has_class)
                return 0;
        if (!s->has_image || !s->has_class)
                return err_set(err, -EINVAL, "file '%s': sample '%.100s' has no %s", r->path, s->key,
                               s->has_image ? ".cls" : ".jpg, .png, .pgm or .ppm");
        if (samples->count == r->room) {
                size_t room = r->room > 0 ? 2 * r->room : 1024;
                int32_t *more = reallocarray(samples->labels, room, sizeof(*more));

                if (more == NULL)
                        return err_set(err, -ENOMEM, "no memory for %zu labels", room);
                samples->labels = more;
                r->room = room;
        }
        if (sample_files_note(&r->d->files[r->split], r->file, s->offset, s->size_bytes, err) < 0)
                return err->code;
        samples->labels[samples->count++] = (int32_t) s->class;
        return 0;
}

static int add_member(struct reader *r, struct sample *s, const struct tar_member *m, struct err *err)
{
        char key[TAR_NAME_BYTES] = "";
        const char *extension = split_name(m->name, key);

        if (strcmp(key, s->key) != 0) {
                if (end_sample(r, s, err) < 0)
                        return err->code;
                *s = (struct sample){ 0 };
                (void) text_copy(s->key, sizeof(s->key), key);
        }
        if (strcasecmp(extension, ".cls") == 0) {
                s->has_class = true;
                return read_class(r, m, &s->class, err);
        }
        /* KEY.seg.png, a mask, is no image of the sample: its extension is all of .seg.png */
        if (image_has_name(extension) && strchr(extension + 1, '.') == NULL) {
                if (s->has_image)
                        return err_set(err, -EINVAL,
                                       "file '%s', byte %llu: sample '%.100s' has two images: leave one of "
                                       "them out",
                                       r->path, (unsigned long long) m->offset, s->key);
                s->has_image = true;
                s->offset = m->offset;
                s->size_bytes = m->size_bytes;
        }
        return 0;
}

static int read_shard(struct reader *r, const char *path, struct err *err)
{
        CLEANUP(free_p) struct sample *sample = calloc(1, sizeof(*sample));
        struct tar_member m;
        struct tar tar;
        int more = 1;

        r->path = path;
        r->file = sample_files_add(&r->d->files[r->split], path, err);
        if (r->file < 0 || sample == NULL)
                return r->file < 0 ? r->file : err_set(err, -ENOMEM, "no memory");
        tar = (struct tar){ .fd = r->d->files[r->split].files[r->file].fd,
                            .size_bytes = r->d->files[r->split].files[r->file].size_bytes };
        while (more > 0) {
                more = tar_next(&tar, &m, err);
                if (more < 0)
                        return err_wrap(err, more, "file '%s'", path);
                if (more > 0 && add_member(r, sample, &m, err) < 0)
                        return err->code;
        }
        return end_sample(r, sample, err);
}

static int read_split(struct dataset *d, const char *directory, enum dataset_split split, struct err *err)
{
        struct reader r = { .d = d, .split = split };
        char **names, path[4096];
        size_t count =
                sample_files_list(directory, split == DATASET_TRAIN ? "train-" : "test-", ".tar", &names);
        int result = 0;

        for (size_t i = 0; result == 0 && i < count; i++)
                result = text_format(path, sizeof(path), "%s/%s", directory, names[i])
                                 ? read_shard(&r, path, err)
                                 : err_set(err, -EINVAL, "--data: the directory's name is too long");
        sample_files_list_free(names, count);
        if (result == 0 && d->splits[split].count == 0)
                result = err_set(err, -EINVAL, "directory '%s' has no samples in %s-*.tar", directory,
                                 split == DATASET_TRAIN ? "train" : "test");
        return result;
}

/* The encoded bytes of a sample. @ret: allocated */
static int encoded(const struct dataset *d, enum dataset_split split, size_t i, uint8_t **ret,
                   struct err *err)
{
        const struct sample_files *files = &d->files[split];
        uint8_t *bytes = malloc((size_t) files->places[i].size_bytes + 1);

        if (bytes == NULL)
                return err_set(err, -ENOMEM, "no memory for an image of %u bytes",
                               files->places[i].size_bytes);
        if (sample_files_read(files, i, bytes, err) < 0) {
                free(bytes);
                return err->code;
        }
        *ret = bytes;
        return 0;
}

static int read_tar(struct dataset *d, const char *directory, struct err *err)
{
        CLEANUP(free_p) uint8_t *bytes = NULL;
        struct image image = { 0 };

        for (int split = 0; split < DATASET_SPLITS; split++) {
                const struct dataset_samples *s = &d->splits[split];

                if (read_split(d, directory, (enum dataset_split) split, err) < 0)
                        return err->code;
                for (size_t i = 0; i < s->count; i++)
                        if ((size_t) s->labels[i] >= d->size.classes)
                                d->size.classes = (size_t) s->labels[i] + 1;
        }
        if (encoded(d, DATASET_TRAIN, 0, &bytes, err) < 0)
                return err->code;
        if (image_header(bytes, d->files[DATASET_TRAIN].places[0].size_bytes, &image, err) < 0)
                return sample_files_wrong(&d->files[DATASET_TRAIN], 0, -EINVAL, err);
        d->size.input =
                (struct shape){ d->preprocess.height > 0 ? d->preprocess.height : image.height,
                                d->preprocess.width > 0 ? d->preprocess.width : image.width, image.channels };
        return 0;
}

static int fetch_tar(const struct dataset *d, enum dataset_split split, size_t i, uint8_t *pixels,
                     struct err *err)
{
        const struct sample_files *files = &d->files[split];
        const struct shape *s = &d->size.input;
        CLEANUP(free_p) uint8_t *bytes = NULL;
        struct image image = { 0 };
        int r = encoded(d, split, i, &bytes, err);

        if (r < 0)
                return r;
        if (d->preprocess.height == 0) {
                r = image_header(bytes, files->places[i].size_bytes, &image, err);
                if (r == 0 && (image.height != s->height || image.width != s->width))
                        r = err_set(
                                err, -EINVAL,
                                "%zu x %zu, the first image is %zu x %zu: --preprocess resize:HxW makes them "
                                "equal",
                                image.height, image.width, s->height, s->width);
        }
        if (r == 0)
                r = image_decode(bytes, files->places[i].size_bytes, s->height, s->width, s->channels, pixels,
                                 err);
        return r < 0 ? sample_files_wrong(files, i, r, err) : 0;
}

const struct dataset_form dataset_tar = { .read = read_tar, .fetch = fetch_tar };
