/* Words are counted in a hash table, numbered, and kept sorted by spelling to be found again. */
#include "trainer/data/tokens.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

#define WORD_BYTES 64 /* longer ones are cut */

struct word { /* in the text, not terminated */
        const char *at;
        uint32_t size, count, number;
};

struct tokens_vocabulary { /* the words that have numbers, by spelling without case */
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

static int compare_spelling(const char *a, size_t a_size, const char *b, size_t b_size)
{
        int order = strncasecmp(a, b, a_size < b_size ? a_size : b_size);

        return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

static int compare_words(const void *a, const void *b)
{
        const struct word *x = *(struct word *const *) a, *y = *(struct word *const *) b;

        if (x->count != y->count)
                return x->count < y->count ? 1 : -1;
        return compare_spelling(x->at, x->size, y->at, y->size);
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
        qsort(order, n, sizeof(struct word *), compare_words);
        n = n < TOKENS_WORDS_MAX - 1 ? n : TOKENS_WORDS_MAX - 1;
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

static int compare_known(const void *a, const void *b)
{
        const struct known_word *x = a, *y = b;

        return compare_spelling(x->text, x->size, y->text, y->size);
}

static struct tokens_vocabulary *keep_vocabulary(const struct words *words, size_t known)
{
        struct tokens_vocabulary *v = calloc(1, sizeof(*v) + known * sizeof(v->words[0]));

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

void tokens_vocabulary_free(struct tokens_vocabulary *v)
{
        free(v);
}

static uint32_t number_of(const struct tokens_vocabulary *v, const char *word, size_t size)
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

size_t tokens_of(const struct tokens_vocabulary *v, const char *text, size_t size_bytes, uint32_t *tokens)
{
        size_t count = 0, size;

        for (; v == NULL && count < size_bytes; count++)
                tokens[count] = (uint32_t) (unsigned char) text[count] + 1;
        for (const char *at = text; v != NULL && (size = next_word(&at, text + size_bytes)) > 0; at += size)
                tokens[count++] = number_of(v, at, size);
        return count;
}

static int learn_words(const char *text, size_t size_bytes, struct tokens_vocabulary **ret, size_t *ret_known)
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

int tokens_learn(const char *text, size_t size_bytes, bool bytes, uint32_t **ret, size_t *ret_count,
                 size_t *ret_known, struct tokens_vocabulary **ret_vocabulary, struct err *err)
{
        struct tokens_vocabulary *v = NULL;
        uint32_t *tokens = calloc(size_bytes + 1, sizeof(*tokens));

        *ret_known = 257;
        if (tokens == NULL || (!bytes && learn_words(text, size_bytes, &v, ret_known) < 0)) {
                free(tokens);
                return err_set(err, -ENOMEM, "no memory for %zu bytes of text", size_bytes);
        }
        *ret_count = tokens_of(v, text, size_bytes, tokens);
        *ret = tokens;
        if (ret_vocabulary != NULL)
                *ret_vocabulary = v;
        else
                tokens_vocabulary_free(v);
        return 0;
}
