/* Text: the files of a directory, one after the other in the order of their names, as numbered words or
 * bytes. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/text.h"
#include "trainer/data/dataset.h"

#define WORD_BYTES 64 /* longer ones are cut */

struct word { /* in the text, not terminated */
        const char *at;
        uint32_t size, count, number;
};

struct vocabulary { /* the words that have numbers, by spelling without case */
        size_t count;
        struct known_word {
                char text[WORD_BYTES];
                uint32_t size, number;
        } words[];
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
        while (p < end && is_letter(*p) && p - *at < WORD_BYTES)
                p++;
        return (size_t) (p - *at);
}

static bool same_word(const struct word *w, const char *at, size_t size)
{
        return w->size == size && strncasecmp(w->at, at, size) == 0;
}

static struct word *find_word(const struct words *words, const char *at, size_t size)
{
        uint64_t hash = 0;

        for (size_t i = 0; i < size; i++) {
                int letter = tolower((unsigned char) at[i]);

                hash = hash_bytes(&letter, sizeof(letter), hash);
        }
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

static int compare_spelling(const char *a, size_t a_size, const char *b, size_t b_size)
{
        int order = strncasecmp(a, b, a_size < b_size ? a_size : b_size);

        return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

static int compare_known(const void *a, const void *b)
{
        const struct known_word *x = a, *y = b;

        return compare_spelling(x->text, x->size, y->text, y->size);
}

static struct vocabulary *keep_vocabulary(const struct words *words, size_t known)
{
        struct vocabulary *v = calloc(1, sizeof(*v) + known * sizeof(v->words[0]));

        for (size_t i = 0; v != NULL && i < words->room; i++) {
                const struct word *w = &words->slots[i];
                struct known_word *k = &v->words[v->count];

                if (w->at == NULL || w->number == 0)
                        continue;
                memcpy(k->text, w->at, w->size);
                k->size = w->size;
                k->number = w->number;
                v->count++;
        }
        if (v != NULL)
                qsort(v->words, v->count, sizeof(v->words[0]), compare_known);
        return v;
}

void vocabulary_free(struct vocabulary *v)
{
        free(v);
}

static uint32_t number_of(const struct vocabulary *v, const char *word, size_t size)
{
        size_t low = 0, high = v->count;

        while (low < high) {
                size_t middle = (low + high) / 2;
                int order = compare_spelling(word, size, v->words[middle].text, v->words[middle].size);

                if (order == 0)
                        return v->words[middle].number;
                if (order < 0)
                        high = middle;
                else
                        low = middle + 1;
        }
        return 0;
}

/* Numbers of the tokens, @v: NULL = bytes. Return: how many. */
static size_t tell_tokens(const struct vocabulary *v, const char *text, size_t size_bytes, uint32_t *tokens)
{
        size_t count = 0, size;

        for (; v == NULL && count < size_bytes; count++)
                tokens[count] = (uint32_t) (unsigned char) text[count] + 1;
        for (const char *at = text; v != NULL && (size = next_word(&at, text + size_bytes)) > 0; at += size)
                tokens[count++] = number_of(v, at, size);
        return count;
}

static int learn_words(const char *text, size_t size_bytes, struct vocabulary **ret, size_t *ret_known)
{
        struct words words = { .room = size_bytes + 3 }; /* never full: a word has a byte or more */
        int64_t known = -ENOMEM;

        words.slots = calloc(words.room, sizeof(*words.slots));
        if (words.slots != NULL) {
                (void) count_words(&words, text, text + size_bytes);
                known = number_words(&words);
        }
        *ret = known >= 0 ? keep_vocabulary(&words, (size_t) known) : NULL;
        free(words.slots);
        *ret_known = (size_t) known;
        return *ret != NULL ? 0 : -ENOMEM;
}

int dataset_tokens(const char *text, size_t size_bytes, bool bytes, uint32_t **ret, size_t *ret_count,
                   size_t *ret_known, struct vocabulary **ret_vocabulary, struct err *err)
{
        struct vocabulary *v = NULL;
        uint32_t *tokens = calloc(size_bytes + 1, sizeof(*tokens));

        *ret_known = 257;
        if (tokens == NULL || (!bytes && learn_words(text, size_bytes, &v, ret_known) < 0)) {
                free(tokens);
                return err_set(err, -ENOMEM, "no memory for %zu bytes of text", size_bytes);
        }
        *ret_count = tell_tokens(v, text, size_bytes, tokens);
        *ret = tokens;
        if (ret_vocabulary != NULL)
                *ret_vocabulary = v;
        else
                vocabulary_free(v);
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
static int read_files(struct dataset *d, const char *directory, struct text *all, struct err *err)
{
        struct dirent **entries = NULL;
        int count = scandir(directory, &entries, is_plain_name, alphasort), r = 0;
        char path[4096];

        if (count < 0)
                return err_set(err, -errno, "--data: directory '%s': %m", directory);
        for (int i = 0; i < count; i++) {
                struct stat facts;

                bool later = d->later != NULL && seen_has(d->later, entries[i]->d_name);

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

int dataset_read_text(struct dataset *d, const char *directory, struct err *err)
{
        CLEANUP(text_free) struct text all = { .max_bytes = TEXT_BYTES_MAX };
        CLEANUP(free_p) uint32_t *tokens = NULL;
        size_t count = 0, known = 0, first = 0;
        int r = read_files(d, directory, &all, err);

        if (r == 0)
                r = dataset_tokens(all.data != NULL ? all.data : "", all.size_bytes, d->preprocess.bytes,
                                   &tokens, &count, &known, &d->vocabulary, err);
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
                struct dataset_samples *s = &d->splits[split];

                s->tokens = calloc(tokens_here, sizeof(*s->tokens));
                if (s->tokens == NULL)
                        return err_set(err, -ENOMEM, "no memory for %zu words", tokens_here);
                memcpy(s->tokens, tokens + first, tokens_here * sizeof(*tokens));
                s->count = tokens_here - TEXT_CONTEXT;
                first += tokens_here;
        }
        return 0;
}

int dataset_join_text(struct dataset *d, const char *directory, const char *name, struct err *err)
{
        CLEANUP(text_free) struct text all = { .max_bytes = TEXT_BYTES_MAX };
        struct dataset_samples *s = &d->splits[DATASET_TRAIN];
        size_t before = s->count + TEXT_CONTEXT;
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
        s->count += tell_tokens(d->vocabulary, all.data, all.size_bytes, tokens + before);
        return 0;
}
