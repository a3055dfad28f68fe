/* Finds the ends of items by strings and brackets alone. */
#include "base/json/json_items.h"

#include <errno.h>
#include <string.h>

#include "base/json/json_scan.h"

#define DEPTH_KINDS 512 /* brackets are matched by kind as far down as this, below it by their number */

/* A position in the text; `at` never passes `end`. */
struct scan {
        const char *at, *end;
};

static void skip_blank(struct scan *s)
{
        while (s->at < s->end && json_scan_is_blank(*s->at))
                s->at++;
}

/* At the opening quote; afterwards behind the closing one. */
static bool skip_string(struct scan *s)
{
        s->at++;
        for (;;) {
                const char *quote = memchr(s->at, '"', (size_t) (s->end - s->at));
                const char *back;

                if (quote == NULL)
                        return false;
                for (back = quote; back > s->at && back[-1] == '\\';)
                        back--;
                s->at = quote + 1;
                if ((quote - back) % 2 == 0)
                        return true;
        }
}

/* Brackets are matched; everything between them but strings is somebody else's to judge. */
static bool skip_brackets(struct scan *s)
{
        char open[DEPTH_KINDS];
        size_t depth = 0;

        while (s->at < s->end) {
                char c = *s->at;

                if (c == '"') {
                        if (!skip_string(s))
                                return false;
                        continue;
                }
                s->at++;
                if (c == '{' || c == '[') {
                        if (depth < DEPTH_KINDS)
                                open[depth] = c;
                        depth++;
                } else if (c == '}' || c == ']') {
                        if (--depth < DEPTH_KINDS && open[depth] != (c == '}' ? '{' : '['))
                                return false;
                        if (depth == 0)
                                return true;
                }
        }
        return false;
}

static bool skip_value(struct scan *s)
{
        skip_blank(s);
        if (s->at == s->end)
                return false;
        if (*s->at == '"')
                return skip_string(s);
        if (*s->at == '{' || *s->at == '[')
                return skip_brackets(s);
        if (strchr("}],:", *s->at) != NULL)
                return false;
        while (s->at < s->end && strchr(",}] \t\r\n", *s->at) == NULL)
                s->at++;
        return true;
}

static bool expect(struct scan *s, char c)
{
        skip_blank(s);
        if (s->at == s->end || *s->at != c)
                return false;
        s->at++;
        return true;
}

static bool peek(struct scan *s, char c)
{
        skip_blank(s);
        return s->at < s->end && *s->at == c;
}

struct member {
        const char *name, *value;
        size_t name_bytes, value_bytes; /* the name without its quotes */
};

/* next_member() - at `{`, or behind a member. Return: 1 a member, 0 the object's end (passed), -1 broken. */
static int next_member(struct scan *s, bool first, struct member *ret)
{
        if (peek(s, '}')) {
                s->at++;
                return 0;
        }
        if ((!first && !expect(s, ',')) || !peek(s, '"'))
                return -1;
        ret->name = s->at + 1;
        if (!skip_string(s))
                return -1;
        ret->name_bytes = (size_t) (s->at - 1 - ret->name);
        if (!expect(s, ':'))
                return -1;
        skip_blank(s);
        ret->value = s->at;
        if (!skip_value(s))
                return -1;
        ret->value_bytes = (size_t) (s->at - ret->value);
        return 1;
}

static bool is_named(const struct member *m, const char *name)
{
        return m->name_bytes == strlen(name) && memcmp(m->name, name, m->name_bytes) == 0;
}

/* A plain string value (no escapes: these are names and tokens) into a field. False if it does not fit. */
static bool copy_string(const struct member *m, char *field, size_t field_bytes)
{
        if (m->value_bytes < 2 || m->value[0] != '"' || memchr(m->value, '\\', m->value_bytes) != NULL)
                return true;
        if (m->value_bytes - 2 >= field_bytes)
                return false;
        memcpy(field, m->value + 1, m->value_bytes - 2);
        field[m->value_bytes - 2] = '\0';
        return true;
}

static void read_metadata(const struct member *metadata, struct json_items *items)
{
        struct scan s = { metadata->value, metadata->value + metadata->value_bytes };
        struct member m;

        if (!expect(&s, '{'))
                return;
        for (bool first = true; next_member(&s, first, &m) > 0; first = false) {
                if (is_named(&m, "resourceVersion"))
                        (void) copy_string(&m, items->resource_version, sizeof(items->resource_version));
                if (is_named(&m, "continue"))
                        items->continue_cut = !copy_string(&m, items->continue_, sizeof(items->continue_));
        }
}

static void finish_list(struct json_items *items, const struct member *list)
{
        size_t length = strlen(items->kind);

        items->is_list = true;
        items->at = list->value + 1;
        items->end = list->value + list->value_bytes - 1;
        if (length > 4 && strcmp(items->kind + length - 4, "List") == 0)
                items->kind[length - 4] = '\0'; /* "PodList" */
        else
                items->kind[0] = '\0'; /* "List": the items say themselves what they are */
}

int json_items_open(const char *bytes, size_t size_bytes, struct json_items *ret, struct err *err)
{
        struct scan s = { bytes, bytes + size_bytes };
        struct json_items items = { 0 };
        struct member m, list = { 0 };
        const char *begin;
        int r;

        skip_blank(&s);
        if (s.at == s.end)
                return err_set(err, -ENODATA, "is empty");
        begin = s.at;
        if (!expect(&s, '{'))
                return err_set(err, -EBADMSG, "does not begin with '{'");
        for (bool first = true; (r = next_member(&s, first, &m)) > 0; first = false) {
                if (is_named(&m, "items") && m.value[0] == '[')
                        list = m;
                else if (is_named(&m, "kind"))
                        (void) copy_string(&m, items.kind, sizeof(items.kind));
                else if (is_named(&m, "metadata"))
                        read_metadata(&m, &items);
        }
        items.at = begin;
        items.end = s.at;
        skip_blank(&s);
        if (r < 0 || s.at != s.end)
                return err_set(err, -EBADMSG, "is not complete JSON (near byte %zu of %zu)",
                               (size_t) (s.at - bytes), size_bytes);
        if (list.value != NULL)
                finish_list(&items, &list);
        *ret = items;
        return 0;
}

bool json_items_next(struct json_items *items, const char **ret_bytes, size_t *ret_size_bytes)
{
        struct scan s = { items->at, items->end };

        skip_blank(&s);
        if (s.at < s.end && *s.at == ',')
                s.at++;
        skip_blank(&s);
        if (s.at == s.end)
                return false;
        *ret_bytes = s.at;
        if (!skip_value(&s))
                return false;
        *ret_size_bytes = (size_t) (s.at - *ret_bytes);
        items->at = s.at;
        return true;
}
