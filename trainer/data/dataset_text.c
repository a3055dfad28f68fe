/* Text: the files of a directory, one after the other in the order of their names, as numbered words or
 * bytes. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/read_file.h"
#include "trainer/data/dataset.h"

#define TEXT_BYTES_MAX       ((size_t) 1 << 28)
#define VOCABULARY           "vocab.txt" /* of tokenise:wordpiece; no text */
#define VOCABULARY_BYTES_MAX ((size_t) 1 << 25)

static int append_file(struct text *all, const char *path, struct err *err)
{
        CLEANUP(fclose_p) FILE *f = fopen(path, "re");
        char block[65536];
        size_t got;

        if (f == NULL)
                return err_set(err, -errno, "file '%s': %m", path);
        while ((got = fread(block, 1, sizeof(block), f)) > 0)
                text_append_bytes(all, block, got);
        text_append_char(all, '\n');
        if (ferror(f) != 0)
                return err_set(err, -EIO, "file '%s': not readable", path);
        return all->failed ? err_set(err, -E2BIG, "file '%s': the text is larger than %zu bytes", path,
                                     TEXT_BYTES_MAX)
                           : 0;
}

/* Links are passed over: what they point to has its turn under its own name. */
static int read_files(struct dataset *d, const char *directory, struct text *all, struct err *err)
{
        struct dirent **entries = NULL;
        int count = scandir(directory, &entries, dataset_is_visible, alphasort), r = 0;
        char path[4096];

        if (count < 0)
                return err_set(err, -errno, "--data: directory '%s': %m", directory);
        for (int i = 0; i < count; i++) {
                struct stat facts;

                bool later = (d->later != NULL && seen_has(d->later, entries[i]->d_name)) ||
                             (d->preprocess.pieces && strcmp(entries[i]->d_name, VOCABULARY) == 0);

                if (r == 0 && !later &&
                    text_format(path, sizeof(path), "%s/%s", directory, entries[i]->d_name) &&
                    lstat(path, &facts) == 0 && S_ISREG(facts.st_mode))
                        r = append_file(all, path, err);
                if (r == 0 && !later && seen_add(&d->seen, entries[i]->d_name) < 0)
                        r = err_set(err, -ENOMEM, "no memory for the files' names");
                free(entries[i]);
        }
        free(entries);
        return r;
}

static int read_vocabulary(struct dataset *d, const char *directory, struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        size_t size_bytes = 0;
        char path[4096];

        if (!text_format(path, sizeof(path), "%s/" VOCABULARY, directory))
                return err_set(err, -EINVAL, "--data: the directory's name is too long");
        if (read_file(path, VOCABULARY_BYTES_MAX, &bytes, &size_bytes, err) < 0)
                return err_wrap(err, -EINVAL, "tokenise:wordpiece");
        return wordpiece_parse(bytes, size_bytes, &d->pieces, err) < 0
                       ? err_wrap(err, err->code, "file '%s'", path)
                       : 0;
}

/* The text's tokens' numbers. @ret: allocated */
static int tokenise(struct dataset *d, const char *directory, const struct text *all, uint32_t **ret,
                    size_t *ret_count, size_t *ret_known, struct err *err)
{
        const char *text = all->data != NULL ? all->data : "";

        if (!d->preprocess.pieces)
                return tokens_learn(text, all->size_bytes, d->preprocess.bytes, ret, ret_count, ret_known,
                                    &d->vocabulary, err);
        if (read_vocabulary(d, directory, err) < 0)
                return err->code;
        *ret = calloc(all->size_bytes + 1, sizeof(**ret));
        if (*ret == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu bytes of text", all->size_bytes);
        *ret_count = wordpiece_of(d->pieces, text, all->size_bytes, *ret);
        *ret_known = wordpiece_count(d->pieces);
        return 0;
}

static int read_text(struct dataset *d, const char *directory, struct err *err)
{
        CLEANUP(text_free) struct text all = { .max_bytes = TEXT_BYTES_MAX };
        CLEANUP(free_p) uint32_t *tokens = NULL;
        size_t count = 0, known = 0, first = 0;
        int r = read_files(d, directory, &all, err);

        if (r == 0)
                r = tokenise(d, directory, &all, &tokens, &count, &known, err);
        if (r < 0)
                return r;
        if (count < (size_t) 20 * (DATASET_TEXT_CONTEXT + 1))
                return err_set(err, -EINVAL,
                               "--data: directory '%s' has %zu words of text: %d are wanted at the least",
                               directory, count, 20 * (DATASET_TEXT_CONTEXT + 1));
        d->size = (struct model_size){ .input = { 1, 1, DATASET_TEXT_CONTEXT }, .classes = known };
        for (int split = 0; split < DATASET_SPLITS; split++) {
                size_t tokens_here = split == DATASET_TRAIN ? count - count / 10 : count / 10;
                struct dataset_samples *s = &d->splits[split];

                s->tokens = calloc(tokens_here, sizeof(*s->tokens));
                if (s->tokens == NULL)
                        return err_set(err, -ENOMEM, "no memory for %zu words", tokens_here);
                memcpy(s->tokens, tokens + first, tokens_here * sizeof(*tokens));
                s->count = tokens_here - DATASET_TEXT_CONTEXT;
                first += tokens_here;
        }
        return 0;
}

static int join_text(struct dataset *d, const char *directory, const char *name, struct err *err)
{
        CLEANUP(text_free) struct text all = { .max_bytes = TEXT_BYTES_MAX };
        struct dataset_samples *s = &d->splits[DATASET_TRAIN];
        size_t before = s->count + DATASET_TEXT_CONTEXT;
        struct stat facts;
        uint32_t *tokens;
        char path[4096];

        if (!text_format(path, sizeof(path), "%s/%s", directory, name) || lstat(path, &facts) < 0 ||
            !S_ISREG(facts.st_mode))
                return err_set(err, -EINVAL, "no plain file");
        if (append_file(&all, path, err) < 0)
                return err->code == -E2BIG ? -EINVAL : -EAGAIN;
        tokens = reallocarray(s->tokens, before + all.size_bytes, sizeof(*tokens));
        if (tokens == NULL)
                return err_set(err, -ENOMEM, "no memory for %zu bytes of text", all.size_bytes);
        s->tokens = tokens;
        s->count += d->pieces != NULL ? wordpiece_of(d->pieces, all.data, all.size_bytes, tokens + before)
                                      : tokens_of(d->vocabulary, all.data, all.size_bytes, tokens + before);
        return 0;
}

static bool name_of(const char *part, const char *file, char *name, size_t name_bytes)
{
        (void) part;
        return strcmp(file, VOCABULARY) != 0 && text_copy(name, name_bytes, file);
}

const struct dataset_form dataset_text = { .read = read_text, .join = join_text, .name_of = name_of };
