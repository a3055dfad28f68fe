/* Text: the files of a directory, one after the other in the order of their names, as numbered words or
 * bytes. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/cleanup.h"
#include "core/text.h"
#include "trainer/dataset.h"

struct word { /* in the text, not terminated */
        const char *at;
        uint32_t size, count, number;
};

struct words {
        struct word *slots; /* hashed, open addressing */
        size_t room, used;
};

static bool is_letter(char c)
{
        return isalnum((unsigned char) c) != 0 || (unsigned char) c >= 0x80;
}

/* The token that begins at or after `at`. Return: its size, 0 at the end. */
static size_t next_word(const char **at, const char *end)
{
        const char *p = *at;

        while (p < end && (isspace((unsigned char) *p) || *p == '\0'))
                p++;
        *at = p;
        if (p < end && !is_letter(*p))
                return 1;
        while (p < end && is_letter(*p) && p - *at < 64)
                p++;
        return (size_t) (p - *at);
}

static bool same_word(const struct word *w, const char *at, size_t size)
{
        return w->size == size && strncasecmp(w->at, at, size) == 0;
}

static struct word *find_word(const struct words *words, const char *at, size_t size)
{
        uint64_t hash = 14695981039346656037ULL;

        for (size_t i = 0; i < size; i++)
                hash = (hash ^ (uint64_t) (unsigned) tolower((unsigned char) at[i])) * 1099511628211ULL;
        for (size_t i = (size_t) (hash % words->room);; i = (i + 1) % words->room)
                if (words->slots[i].at == NULL || same_word(&words->slots[i], at, size))
                        return &words->slots[i];
}

static int compare_words(const void *a, const void *b)
{
        const struct word *x = *(struct word *const *) a, *y = *(struct word *const *) b;
        int order;

        if (x->count != y->count)
                return x->count < y->count ? 1 : -1;
        order = strncasecmp(x->at, y->at, x->size < y->size ? x->size : y->size);
        return order != 0 ? order : (x->size > y->size) - (x->size < y->size);
}

/* Gives the most frequent words the numbers 1, 2, ... Return: numbers used, or -ENOMEM. */
static int64_t number_words(struct words *words)
{
        CLEANUP(free_p) struct word **order = calloc(words->used + 1, sizeof(struct word *));
        size_t n = 0;

        if (order == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < words->room; i++)
                if (words->slots[i].at != NULL)
                        order[n++] = &words->slots[i];
        qsort(order, n, sizeof(*order), compare_words);
        n = n < TEXT_VOCABULARY_MAX - 1 ? n : TEXT_VOCABULARY_MAX - 1;
        for (size_t i = 0; i < n; i++)
                order[i]->number = (uint32_t) i + 1;
        return (int64_t) n + 1;
}

static size_t count_words(struct words *words, const char *text, const char *end)
{
        size_t total = 0, size;

        for (const char *at = text; (size = next_word(&at, end)) > 0; at += size, total++) {
                struct word *w = find_word(words, at, size);

                if (w->at == NULL) {
                        *w = (struct word){ .at = at, .size = (uint32_t) size };
                        words->used++;
                }
                w->count++;
        }
        return total;
}

int dataset_tokens(const char *text, size_t size_bytes, bool bytes, uint32_t **ret, size_t *ret_count,
                   size_t *ret_known, struct err *err)
{
        struct words words = { .room = size_bytes + 3 }; /* never full: a word has a byte or more */
        CLEANUP(free_p) uint32_t *tokens = calloc(size_bytes + 1, sizeof(*tokens));
        size_t count = 0, size;
        int64_t known = 257;

        words.slots = bytes ? NULL : calloc(words.room, sizeof(*words.slots));
        if (tokens == NULL || (!bytes && words.slots == NULL))
                return err_set(err, -ENOMEM, "no memory for %zu bytes of text", size_bytes);
        for (; bytes && count < size_bytes; count++)
                tokens[count] = (uint32_t) (unsigned char) text[count] + 1;
        if (!bytes) {
                (void) count_words(&words, text, text + size_bytes);
                known = number_words(&words);
                for (const char *at = text; (size = next_word(&at, text + size_bytes)) > 0; at += size)
                        tokens[count++] = find_word(&words, at, size)->number;
        }
        free(words.slots);
        if (known < 0)
                return err_set(err, -ENOMEM, "no memory for the words");
        *ret = TAKE(tokens);
        *ret_count = count;
        *ret_known = (size_t) known;
        return 0;
}

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

static int is_plain_name(const struct dirent *entry)
{
        return entry->d_name[0] != '.';
}

/* Links are passed over: what they point to has its turn under its own name. */
static int read_files(const char *directory, struct text *all, struct err *err)
{
        struct dirent **entries = NULL;
        int count = scandir(directory, &entries, is_plain_name, alphasort), r = 0;
        char path[4096];

        if (count < 0)
                return err_set(err, -errno, "--data: directory '%s': %m", directory);
        for (int i = 0; i < count; i++) {
                struct stat facts;

                if (r == 0 && text_format(path, sizeof(path), "%s/%s", directory, entries[i]->d_name) &&
                    lstat(path, &facts) == 0 && S_ISREG(facts.st_mode))
                        r = append_file(all, path, err);
                free(entries[i]);
        }
        free(entries);
        return r;
}

int dataset_read_text(struct dataset *d, const char *directory, struct err *err)
{
        CLEANUP(text_free) struct text all = { .max_bytes = TEXT_BYTES_MAX };
        CLEANUP(free_p) uint32_t *tokens = NULL;
        size_t count = 0, known = 0, first = 0;
        int r = read_files(directory, &all, err);

        if (r == 0)
                r = dataset_tokens(all.data != NULL ? all.data : "", all.size_bytes, d->preprocess.bytes,
                                   &tokens, &count, &known, err);
        if (r < 0)
                return r;
        if (count < 20 * (TEXT_CONTEXT + 1))
                return err_set(err, -EINVAL,
                               "--data: directory '%s' has %zu words of text: %d are wanted at the least",
                               directory, count, 20 * (TEXT_CONTEXT + 1));
        d->form = "text";
        d->size = (struct model_size){ .input = { 1, 1, TEXT_CONTEXT }, .classes = known };
        for (int split = 0; split < DATASET_SPLITS; split++) {
                size_t tokens_here = split == DATASET_TRAIN ? count - count / 10 : count / 10;
                struct split *s = &d->splits[split];

                s->tokens = calloc(tokens_here, sizeof(*s->tokens));
                if (s->tokens == NULL)
                        return err_set(err, -ENOMEM, "no memory for %zu words", tokens_here);
                memcpy(s->tokens, tokens + first, tokens_here * sizeof(*tokens));
                s->count = tokens_here - TEXT_CONTEXT;
                first += tokens_here;
        }
        return 0;
}
