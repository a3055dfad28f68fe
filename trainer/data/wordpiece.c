/* A hash table of pieces, by open addressing; words are matched greedily. */
#include "trainer/data/wordpiece.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

struct piece {
        const char *at; /* in the file's bytes */
        uint32_t size;
};

struct wordpiece {
        char *bytes;
        struct piece *pieces; /* by number */
        size_t count, longest;
        uint32_t *slots; /* number + 1; 0 = free */
        size_t room;
        uint32_t unknown;
        bool lower;
};

/* Return: the slot that has the piece `prefix` + `at`, or the free one for it. */
static uint32_t *find(const struct wordpiece *w, const char *prefix, const char *at, size_t size)
{
        size_t before = strlen(prefix);
        uint64_t hash = hash_bytes(at, size, hash_bytes(prefix, before, 0));

        for (size_t i = (size_t) (hash % w->room);; i = (i + 1) % w->room) {
                const struct piece *p = w->slots[i] > 0 ? &w->pieces[w->slots[i] - 1] : NULL;

                if (p == NULL || (p->size == before + size && memcmp(p->at, prefix, before) == 0 &&
                                  memcmp(p->at + before, at, size) == 0))
                        return &w->slots[i];
        }
}

static uint32_t *find_piece(const struct wordpiece *w, bool goes_on, const char *at, size_t size)
{
        return find(w, goes_on ? "##" : "", at, size);
}

/* A piece of the file as it is looked for: its `##` apart, so that both ways hash alike. */
static uint32_t *find_line(const struct wordpiece *w, const char *at, size_t size)
{
        bool goes_on = size > 2 && at[0] == '#' && at[1] == '#';

        return find_piece(w, goes_on, at + (goes_on ? 2 : 0), size - (goes_on ? 2 : 0));
}

static int add_line(struct wordpiece *w, const char *at, size_t size, struct err *err)
{
        uint32_t *slot;

        if (size == 0)
                return err_set(err, -EINVAL, "line %zu is empty: a piece is wanted", w->count + 1);
        if (w->count == WORDPIECE_PIECES_MAX)
                return err_set(err, -EINVAL, "more than %zu pieces", WORDPIECE_PIECES_MAX);
        slot = find_line(w, at, size);
        if (*slot > 0)
                return err_set(err, -EINVAL, "line %zu: '%.*s' is in line %u, too", w->count + 1,
                               (int) (size < 40 ? size : 40), at, *slot);
        w->pieces[w->count] = (struct piece){ at, (uint32_t) size };
        *slot = (uint32_t) ++w->count;
        w->longest = size > w->longest ? size : w->longest;
        if (at[0] != '[') /* [CLS] and the like are no words */
                for (size_t i = 0; i < size; i++)
                        w->lower = w->lower && !isupper((unsigned char) at[i]);
        return 0;
}

static int parse(struct wordpiece *w, size_t size_bytes, struct err *err)
{
        const char *at = w->bytes, *end = w->bytes + size_bytes;

        while (at < end) {
                const char *newline = memchr(at, '\n', (size_t) (end - at));
                size_t size = (size_t) ((newline != NULL ? newline : end) - at);
                int r = add_line(w, at, size - (size > 0 && at[size - 1] == '\r'), err);

                if (r < 0)
                        return r;
                at += size + 1;
        }
        w->unknown = *find_line(w, "[UNK]", strlen("[UNK]"));
        if (w->unknown-- == 0)
                return err_set(err, -EINVAL, "no piece '[UNK]', for words that cannot be made of the others");
        return 0;
}

int wordpiece_parse(const char *bytes, size_t size_bytes, struct wordpiece **ret, struct err *err)
{
        struct wordpiece *w = calloc(1, sizeof(*w));
        size_t lines = 1;
        int r = -ENOMEM;

        for (size_t i = 0; i < size_bytes; i++)
                lines += bytes[i] == '\n';
        lines = lines < WORDPIECE_PIECES_MAX ? lines : WORDPIECE_PIECES_MAX;
        if (w == NULL)
                return err_set(err, -ENOMEM, "no memory for a vocabulary");
        w->lower = true;
        w->room = 2 * lines + 1;
        w->bytes = malloc(size_bytes + 1);
        w->pieces = calloc(lines, sizeof(*w->pieces));
        w->slots = calloc(w->room, sizeof(*w->slots));
        if (w->bytes != NULL && w->pieces != NULL && w->slots != NULL) {
                if (size_bytes > 0)
                        memcpy(w->bytes, bytes, size_bytes);
                r = parse(w, size_bytes, err);
        } else {
                (void) err_set(err, r, "no memory for %zu pieces", lines);
        }
        if (r < 0) {
                wordpiece_free(w);
                return r;
        }
        *ret = w;
        return 0;
}

void wordpiece_free(struct wordpiece *w)
{
        if (w == NULL)
                return;
        free(w->bytes);
        free(w->pieces);
        free(w->slots);
        free(w);
}

size_t wordpiece_count(const struct wordpiece *w)
{
        return w->count;
}

static char lowered(char c)
{
        if (c >= 'A' && c <= 'Z')
                return "abcdefghijklmnopqrstuvwxyz"[c - 'A'];
        return c;
}

static bool is_letter(char c)
{
        return isalnum((unsigned char) c) != 0 || (unsigned char) c >= 0x80;
}

/* The longest piece that begins the rest of a word. Return: its size, 0 = there is none. */
static size_t longest_piece(const struct wordpiece *w, bool goes_on, const char *at, size_t size,
                            uint32_t *ret)
{
        size_t most = size < w->longest ? size : w->longest;

        for (; most > 0; most--) {
                uint32_t number = *find_piece(w, goes_on, at, most);

                if (number > 0) {
                        *ret = number - 1;
                        return most;
                }
        }
        return 0;
}

/* Return: how many pieces. */
static size_t cut_word(const struct wordpiece *w, const char *word, size_t size, uint32_t *tokens)
{
        size_t count = 0, have = 0, piece;

        while (size <= WORDPIECE_WORD_BYTES && have < size &&
               (piece = longest_piece(w, have > 0, word + have, size - have, &tokens[count])) > 0) {
                have += piece;
                count++;
        }
        if (have == size)
                return count;
        tokens[0] = w->unknown;
        return 1;
}

size_t wordpiece_of(const struct wordpiece *w, const char *text, size_t size_bytes, uint32_t *tokens)
{
        size_t count = 0, at = 0;

        while (at < size_bytes) {
                char word[WORDPIECE_WORD_BYTES + 1];
                size_t size = 0, kept;

                if (isspace((unsigned char) text[at]) || text[at] == '\0') {
                        at++;
                        continue;
                }
                while (at + size < size_bytes && is_letter(text[at + size]))
                        size++;
                size = size > 0 ? size : 1;
                kept = size < sizeof(word) ? size : sizeof(word);
                memcpy(word, text + at, kept);
                for (size_t i = 0; w->lower && i < kept; i++)
                        word[i] = lowered(word[i]);
                count += cut_word(w, word, kept < size ? sizeof(word) : size, tokens + count);
                at += size;
        }
        return count;
}
