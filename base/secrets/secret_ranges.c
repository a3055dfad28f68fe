/* One pass over the runs of letters that may be names; private keys and URLs are looked for beside it. */
#include "base/secrets/secret_ranges.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/secrets/secret_name.h"

struct span {
        size_t from, to;
};

/* Of the text that is looked at. What is hidden already is not hidden once more: a text in which each name's
 * value goes on behind the next name takes no longer than another. */
struct reading {
        const char *text;
        size_t size;
        bool *hidden;
        size_t line;                        /* where the line begins in which the name stands */
        size_t front, rest;                 /* all before and all from there on is hidden */
        struct span lines;                  /* what hide_lines() went through last, */
        size_t lines_of;                    /* of a name on this line */
        struct span word, value, tail, url; /* find_end() */
};

static bool is_in(char c, const char *set)
{
        return c != '\0' && strchr(set, c) != NULL;
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\t';
}

static bool is_space(char c)
{
        return is_in(c, " \t\n\r\v\f");
}

static bool is_alphanumeric(char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_name(char c)
{
        return is_alphanumeric(c) || is_in(c, "_.-");
}

static bool is_at(const struct reading *r, size_t at, const char *word)
{
        size_t length = strlen(word);

        return at <= r->size && r->size - at >= length && strncasecmp(r->text + at, word, length) == 0;
}

static void hide(struct reading *r, size_t from, size_t to)
{
        size_t begin = from > r->front ? from : r->front, end = to < r->rest ? to : r->rest;

        if (begin < end)
                memset(r->hidden + begin, true, (end - begin) * sizeof(*r->hidden));
        if (from <= r->front && to > r->front)
                r->front = to < r->size ? to : r->size;
        if (to >= r->rest && from < r->rest)
                r->rest = from;
}

static bool is_within(const struct span *span, size_t at)
{
        return at >= span->from && at < span->to;
}

/* Where a blank or one of these is. @last: what this did with the same @stops before */
static size_t find_end(const struct reading *r, size_t at, const char *stops, struct span *last)
{
        size_t begin = at;

        if (is_within(last, at))
                return last->to;
        while (at < r->size && !is_space(r->text[at]) && !is_in(r->text[at], stops))
                at++;
        *last = (struct span){ begin, at };
        return at;
}

/* What find_end() went through last is hidden. */
static void hide_until(struct reading *r, size_t at, const char *stops, struct span *last)
{
        if (!is_within(last, at))
                hide(r, at, find_end(r, at, stops, last));
}

static size_t skip(const struct reading *r, size_t at, const char *set)
{
        while (at < r->size && is_in(r->text[at], set))
                at++;
        return at;
}

static size_t end_of_line(const struct reading *r, size_t at)
{
        const char *end = memchr(r->text + at, '\n', r->size - at);

        return end == NULL ? r->size : (size_t) (end - r->text);
}

/* How far a line is indented; a list's "- " is part of it. */
static size_t indentation(const struct reading *r, size_t line)
{
        size_t at = line;

        while (at < r->size && (is_blank(r->text[at]) || r->text[at] == '-'))
                at++;
        return at - line;
}

static void hide_word(struct reading *r, size_t at)
{
        hide_until(r, at, "\"'`", &r->word);
}

/* What stands in quotes. Within JSON that is a string of JSON the quotes have backslashes before them, and
 * those of the value's own have more: `\"token\":\"a\\\"b\"`. @slashes: of the opening one */
static void hide_quoted(struct reading *r, size_t at, size_t slashes)
{
        size_t begin = at, run = 0, limit = begin + SECRET_RANGES_VALUE_BYTES;
        char quote = r->text[at - 1];

        for (; at < r->size && at < limit; at++) {
                if (r->text[at] == quote && run <= slashes) {
                        if (at + 1 >= r->size || r->text[at + 1] != quote)
                                break;
                        at++; /* 'it''s' of YAML */
                }
                run = r->text[at] == '\\' ? run + 1 : 0;
        }
        if (at >= limit)
                at = r->size;
        hide(r, begin, at);
        hide_until(r, at + 1, ",}])\\;&", &r->tail); /* "abc"'def' of a shell */
}

/* Return: where what begins at @at ends: with the line, and with those below that stand deeper. */
static size_t hide_block(struct reading *r, size_t at)
{
        size_t end = end_of_line(r, at), deep = indentation(r, r->line);
        size_t limit = at + SECRET_RANGES_VALUE_BYTES;

        hide(r, at, end);
        while (end < r->size && end < limit) {
                size_t next = end + 1, first = skip(r, next, " \t\r");

                if (first < r->size && r->text[first] != '\n' && indentation(r, next) <= deep)
                        return end;
                end = first < r->size ? end_of_line(r, first) : r->size;
                hide(r, first, end);
        }
        hide(r, end, r->size);
        return r->size;
}

/* Of two names on a line the later one's value ends where the earlier one's does. */
static void hide_lines(struct reading *r, size_t at)
{
        if (r->lines_of == r->line && is_within(&r->lines, at))
                return;
        r->lines = (struct span){ at, hide_block(r, at) };
        r->lines_of = r->line;
}

/* Where a number of JSON ends that begins here: behind it something of JSON goes on. 0 = there is none. */
static size_t end_of_number(const struct reading *r, size_t at)
{
        size_t end = skip(r, at, "0123456789.eE+-");

        if (end == at || end >= r->size)
                return 0;
        if (r->text[end] == ',')
                return end + 1 < r->size && (is_space(r->text[end + 1]) || is_in(r->text[end + 1], "\"\\"))
                               ? end
                               : 0;
        return is_in(r->text[end], "}]") ? end : 0;
}

/* @colon: of YAML, a header, JSON; else of a shell, a query, logfmt. @quoted: the name stood in quotes */
static void hide_value(struct reading *r, size_t at, bool colon, bool quoted)
{
        size_t slashes, number;

        at = skip(r, at, " \t");
        if (at >= r->size)
                return;
        number = quoted ? end_of_number(r, at) : 0;
        slashes = skip(r, at, "\\") - at;
        if (at + slashes < r->size && is_in(r->text[at + slashes], "\"'`"))
                hide_quoted(r, at + slashes + 1, slashes);
        else if (number > 0)
                hide(r, at, number);
        else if (colon)
                hide_lines(r, at);
        else
                hide_until(r, at, "", &r->value);
}

/* Is there a sign that assigns? *ret: behind it. */
static bool is_assigned(const struct reading *r, size_t at, size_t *ret, bool *ret_colon)
{
        if (at < r->size && is_in(r->text[at], ":=")) {
                *ret_colon = r->text[at] == ':';
                *ret = skip(r, at, ":=>~");
                return true;
        }
        *ret_colon = false;
        *ret = at + 3;
        return is_at(r, at, "%3D") || is_at(r, at, "%3A");
}

/* `name: TOKEN` and then `value: S`, or `key`, `Value` and the like. */
static bool is_value_next(const struct reading *r, size_t at, size_t *ret, bool *ret_colon)
{
        at = skip(r, at, "\"'`\\ \t\r\n,-");
        if (!is_at(r, at, "value"))
                return false;
        at = skip(r, at + strlen("value"), "\"'`\\ \t");
        return is_assigned(r, at, ret, ret_colon);
}

/* A secret's name ends at @at. @option: it began with '-' */
static void look_behind_name(struct reading *r, size_t at, bool option)
{
        size_t sign = skip(r, at, "\"'`\\ \t"), value;
        bool colon;

        if (is_assigned(r, sign, &value, &colon)) {
                hide_value(r, value, colon, sign > at && is_in(r->text[sign - 1], "\"'`"));
                return;
        }
        if (is_value_next(r, at, &value, &colon))
                hide_value(r, value, colon, false);
        if (option)
                hide_word(r, skip(r, at, "\"'`\\ \t\r\n,[-"));
}

/* Tokens that are known by how they begin. */
static void look_at_shape(struct reading *r, size_t begin, size_t end)
{
        static const char *const words[] = { "ghp_", "gho_",   "ghs_",  "github_pat_", "glpat-",
                                             "hf_",  "sk-",    "xoxb-", "xoxp-",       "AKIA",
                                             "ASIA", "nvapi-", "npm_",  "pypi-" };
        const char *dot = memrchr(r->text + begin, '.', end - begin);

        for (size_t i = begin; i + 20 <= end && dot != NULL; i++)
                if (memcmp(r->text + i, "eyJ", 3) == 0 && dot > r->text + i) {
                        hide(r, i, end);
                        return;
                }
        for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
                size_t length = strlen(words[i]);

                if (end - begin >= length + 12 && memcmp(r->text + begin, words[i], length) == 0)
                        hide(r, begin, end);
        }
}

/* "API key: S": the word before belongs to it. */
static size_t begin_of_words(const struct reading *r, size_t begin, size_t end)
{
        size_t at = begin;

        if (end - begin != strlen("key") || !is_at(r, begin, "key") || at < 2 || r->text[at - 1] != ' ')
                return begin;
        for (at--; at > 0 && begin - at < 16 && is_name(r->text[at - 1]);)
                at--;
        return at;
}

static void look_at_run(struct reading *r, size_t begin, size_t end)
{
        size_t from = begin_of_words(r, begin, end);

        look_at_shape(r, begin, end);
        if (secret_name(r->text + from, end - from))
                look_behind_name(r, end,
                                 r->text[begin] == '-' ||
                                         memmem(r->text + begin, end - begin, "--", 2) != NULL);
        if (secret_name_bare(r->text + begin, end - begin)) {
                size_t value = skip(r, end, "\"'`\\ \t");

                if (value > end)
                        hide_word(r, value);
        }
}

static void look_at_runs(struct reading *r)
{
        for (size_t at = 0; at < r->rest;) {
                size_t begin = at;

                while (at < r->size && is_name(r->text[at]))
                        at++;
                if (at > begin)
                        look_at_run(r, begin, at);
                else if (r->text[at++] == '\n')
                        r->line = at;
        }
}

/* From where it begins to behind its last dashes. What ends and never began was cut: all before it is its. */
static void look_for_keys(struct reading *r)
{
        size_t begun = SIZE_MAX;

        for (size_t at = 0; at < r->size; at++) {
                const char *dashes = memchr(r->text + at, '-', r->size - at);
                size_t length;

                if (dashes == NULL)
                        break;
                at = (size_t) (dashes - r->text);
                length = r->size - at < 80 ? r->size - at : 80;
                if (is_at(r, at, "-----BEGIN") && begun == SIZE_MAX &&
                    memmem(dashes, length, "PRIVATE KEY", 11) != NULL)
                        begun = at;
                if (is_at(r, at, "-----END") &&
                    (begun != SIZE_MAX || memmem(dashes, length, "PRIVATE KEY", 11) != NULL)) {
                        hide(r, begun == SIZE_MAX ? 0 : begun, at + strlen("-----END"));
                        begun = SIZE_MAX;
                }
        }
        if (begun != SIZE_MAX)
                hide(r, begun, r->size);
}

/* Of `//user:password@host`. Within the part before a '/' the last '@' counts; where the password has a '/'
 * itself, the last of the word. */
static void look_at_authority(struct reading *r, size_t begin)
{
        size_t at = begin, end = find_end(r, begin, "\"'`<>", &r->url);
        bool password = false;
        const char *user_end;

        if (end > begin + SECRET_RANGES_VALUE_BYTES)
                end = begin + SECRET_RANGES_VALUE_BYTES;
        for (; at < end && !is_in(r->text[at], "/?#"); at++)
                if (r->text[at] == ':') /* else a port */
                        password = at + 1 < r->size && !(r->text[at + 1] >= '0' && r->text[at + 1] <= '9');
        user_end = memrchr(r->text + begin, '@', (password ? end : at) - begin);
        if (user_end != NULL)
                hide(r, begin, (size_t) (user_end - r->text));
}

static void look_for_urls(struct reading *r)
{
        for (size_t at = 0; at + 3 < r->size;) {
                const char *found = memmem(r->text + at, r->size - at, "//", 2);

                if (found == NULL)
                        return;
                at = (size_t) (found - r->text) + 2;
                look_at_authority(r, at);
        }
}

void secret_ranges_find(const char *text, size_t size, bool *hidden)
{
        struct reading r = { .text = text, .size = size, .rest = size };

        r.hidden = hidden;

        look_for_keys(&r);
        look_at_runs(&r);
        look_for_urls(&r);
}
