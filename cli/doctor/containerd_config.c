/* containerd config: what containerd's configuration says of CDI. */
#include "cli/doctor/containerd_config.h"

#include <string.h>

#include "base/text.h"

#define KEY_BYTES   256
#define VALUE_BYTES 1024

/* Where a reader is, and what it found last. */
struct line {
        const char *at;        /* the next one */
        char table[KEY_BYTES]; /* "plugins.io.containerd.grpc.v1.cri" */
        char key[KEY_BYTES];   /* with its table's name before it */
        char value[VALUE_BYTES];
        bool is_open; /* a list that has begun */
};

/* A name without the quotes and spaces that it may be written with: plugins . "a.b" is plugins.a.b, of which
 * no other name is another reading here. */
static void plain(const char *text, size_t size_bytes, char *ret, size_t ret_bytes)
{
        size_t n = 0;

        for (size_t i = 0; i < size_bytes && n + 1 < ret_bytes; i++)
                if (strchr(" \t\r\"'", text[i]) == NULL)
                        ret[n++] = text[i];
        ret[n] = '\0';
}

/* Up to a comment, which a '#' in quotes is none of. */
static size_t without_comment(const char *line, size_t size_bytes)
{
        char quote = '\0';

        for (size_t i = 0; i < size_bytes; i++)
                if (line[i] == quote)
                        quote = '\0';
                else if (quote != '\0')
                        continue;
                else if (line[i] == '"' || line[i] == '\'')
                        quote = line[i];
                else if (line[i] == '#')
                        return i;
        return size_bytes;
}

/* A list may go over several lines: they are added up to its ']', as far as there is room; none of those that
 * are looked for is so long. */
static void add_value(struct line *l, const char *text, size_t size_bytes)
{
        size_t have = strlen(l->value);

        (void) text_format(l->value + have, sizeof(l->value) - have, "%.*s ", (int) size_bytes, text);
}

static bool is_open_list(const char *text, size_t size_bytes)
{
        size_t blank = strspn(text, " \t");

        return blank < size_bytes && text[blank] == '[' && memchr(text, ']', size_bytes) == NULL;
}

/* The next key and its value. Return: false, there is none. */
static bool next(struct line *l)
{
        while (*l->at != '\0') {
                const char *line = l->at + strspn(l->at, " \t"), *equals;
                size_t whole = strcspn(line, "\n"), size = without_comment(line, whole);

                l->at = line + whole + (line[whole] == '\n');
                if (l->is_open) {
                        add_value(l, line, size);
                        l->is_open = memchr(line, ']', size) == NULL;
                        if (l->is_open)
                                continue;
                        return true;
                }
                equals = memchr(line, '=', size);
                if (size > 0 && line[0] == '[') {
                        plain(line + 1, strcspn(line + 1, "]\n"), l->table, sizeof(l->table));
                } else if (equals != NULL) {
                        char key[KEY_BYTES];

                        plain(line, (size_t) (equals - line), key, sizeof(key));
                        (void) text_format(l->key, sizeof(l->key), "%s%s%s", l->table,
                                           l->table[0] != '\0' ? "." : "", key);
                        l->value[0] = '\0';
                        add_value(l, equals + 1, size - (size_t) (equals + 1 - line));
                        l->is_open = is_open_list(equals + 1, size - (size_t) (equals + 1 - line));
                        if (!l->is_open)
                                return true;
                }
        }
        return false;
}

static bool is_key(const struct line *l, const char *key)
{
        static const char *const tables[] = { "plugins.cri", "plugins.io.containerd.grpc.v1.cri",
                                              "plugins.io.containerd.cri.v1.runtime" };
        char full[KEY_BYTES];

        for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
                (void) text_format(full, sizeof(full), "%s.%s", tables[i], key);
                if (strcmp(l->key, full) == 0)
                        return true;
        }
        return false;
}

enum containerd_config_cdi containerd_config_cdi(const char *text)
{
        enum containerd_config_cdi said = CONTAINERD_CONFIG_UNSAID;
        struct line l = { .at = text };

        while (next(&l))
                if (is_key(&l, "enable_cdi"))
                        said = text_starts_with(l.value + strspn(l.value, " \t"), "true")
                                       ? CONTAINERD_CONFIG_ON
                                       : CONTAINERD_CONFIG_OFF;
        return said;
}

static bool is_quote(char c)
{
        return c == '"' || c == '\'';
}

/* Is it one of the strings of a list, with a '/' at its end or without? */
static bool has(const char *list, const char *folder)
{
        for (const char *at = list; (at = strstr(at, folder)) != NULL; at++) {
                const char *end = at + strlen(folder);

                if (at > list && is_quote(at[-1]) && is_quote(end[*end == '/']))
                        return true;
        }
        return false;
}

bool containerd_config_reads(const char *text, const char *folder)
{
        static const char usual[] = "[\"/etc/cdi\", \"/var/run/cdi\"]";
        char own[KEY_BYTES], var[KEY_BYTES];
        struct line l = { .at = text };
        size_t size = strlen(folder);
        const char *other;
        bool reads;

        while (size > 1 && folder[size - 1] == '/')
                size--;
        (void) text_format(own, sizeof(own), "%.*s", (int) size, folder);
        other = text_starts_with(own, "/var/run/") ? own + strlen("/var") : own;
        (void) text_format(var, sizeof(var), "%s%s", text_starts_with(other, "/run/") ? "/var" : "", other);
        reads = has(usual, own) || has(usual, var);
        while (next(&l))
                if (is_key(&l, "cdi_spec_dirs"))
                        reads = has(l.value, own) || has(l.value, other) || has(l.value, var);
        return reads;
}
