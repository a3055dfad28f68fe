/* Events of libyaml become JSON values; anchors are kept until their document ends. */
#include "base/yaml/yaml_parse.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/text.h"
#include "base/yaml/yaml_scalar.h"

#define ANCHORS_MAX 1024
#define VALUE_BYTES 64      /* about, of one in memory */
#define VALUES_MAX  2000000 /* of one stream, expanded aliases included: a bomb of aliases ends here */

struct anchor {
        char *name;
        json_t *value; /* owned */
};

struct reader {
        yaml_parser_t parser;
        struct anchor anchors[ANCHORS_MAX];
        size_t anchor_count;
        size_t value_count;
        struct err *err;
};

static int fail_at(struct reader *r, yaml_mark_t mark, const char *why)
{
        return err_set(r->err, -EBADMSG, "line %zu, column %zu: %s", mark.line + 1, mark.column + 1, why);
}

static int next_event(struct reader *r, yaml_event_t *event)
{
        const yaml_parser_t *p = &r->parser;
        char why[160];

        if (yaml_parser_parse(&r->parser, event))
                return 0;
        if (p->error == YAML_MEMORY_ERROR)
                return err_set(r->err, -ENOMEM, "no memory to read YAML");
        if (p->error == YAML_READER_ERROR)
                return err_set(r->err, -EBADMSG, "byte %zu: %s", p->problem_offset + 1, p->problem);
        (void) text_format(why, sizeof(why), "%s%s%s", p->problem, p->context != NULL ? ", " : "",
                           p->context != NULL ? p->context : "");
        return fail_at(r, p->problem_mark, why);
}

static int plain_scalar(struct reader *r, const yaml_event_t *event, json_t **ret)
{
        const char *why = NULL;

        *ret = yaml_scalar_read((const char *) event->data.scalar.value, &why);
        return *ret == NULL ? fail_at(r, event->start_mark, why) : 0;
}

static int scalar(struct reader *r, const yaml_event_t *event, json_t **ret)
{
        size_t length = event->data.scalar.length;
        const char *s = (const char *) event->data.scalar.value;

        if (memchr(s, '\0', length) != NULL)
                return fail_at(r, event->start_mark, "text must not contain a NUL character");
        if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
                return plain_scalar(r, event, ret);
        *ret = json_stringn(s, length);
        return *ret == NULL ? fail_at(r, event->start_mark, "text that is not UTF-8") : 0;
}

static int read_value(struct reader *r, yaml_event_t *event, unsigned depth, json_t **ret);

/* A long text counts for as many values as have its memory. */
static size_t count_values(const json_t *value)
{
        size_t count = 1 + json_string_length(value) / VALUE_BYTES, index;
        const char *key;
        json_t *child;

        json_array_foreach(value, index, child) count += count_values(child);
        json_object_foreach((json_t *) value, key, child) count +=
                count_values(child) + strlen(key) / VALUE_BYTES;
        return count;
}

static int read_sequence(struct reader *r, unsigned depth, json_t *array)
{
        for (;;) {
                yaml_event_t event;
                json_t *value = NULL;
                int e = next_event(r, &event);

                if (e < 0)
                        return e;
                if (event.type == YAML_SEQUENCE_END_EVENT) {
                        yaml_event_delete(&event);
                        return 0;
                }
                e = read_value(r, &event, depth, &value);
                yaml_event_delete(&event);
                if (e < 0)
                        return e;
                if (json_array_append_new(array, value) < 0)
                        return err_set(r->err, -ENOMEM, "no memory for a YAML list");
        }
}

static int check_key(struct reader *r, const yaml_event_t *event, const json_t *object)
{
        const char *key = (const char *) event->data.scalar.value;
        char why[128];

        if (event->type != YAML_SCALAR_EVENT)
                return fail_at(r, event->start_mark, "a key must be plain text");
        if (event->data.scalar.tag != NULL || event->data.scalar.anchor != NULL)
                return fail_at(r, event->start_mark, "a key must not have a tag or an anchor");
        if (memchr(key, '\0', event->data.scalar.length) != NULL)
                return fail_at(r, event->start_mark, "text must not contain a NUL character");
        if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(key, "<<") == 0)
                return fail_at(r, event->start_mark, "merge keys ('<<') are not supported");
        if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(key, "on") == 0)
                return fail_at(r, event->start_mark,
                               "kubectl reads a bare key `on` as true; write \"on\" in quotes");
        if (json_object_get(object, key) == NULL)
                return 0;
        (void) text_format(why, sizeof(why), "the key '%.64s' appears twice", key);
        return fail_at(r, event->start_mark, why);
}

static int read_pair(struct reader *r, const yaml_event_t *key, unsigned depth, json_t *object)
{
        yaml_event_t event;
        json_t *value = NULL;
        int e = check_key(r, key, object);

        if (e < 0)
                return e;
        e = next_event(r, &event);
        if (e < 0)
                return e;
        e = read_value(r, &event, depth, &value);
        yaml_event_delete(&event);
        if (e < 0)
                return e;
        if (json_object_set_new(object, (const char *) key->data.scalar.value, value) < 0)
                return err_set(r->err, -ENOMEM, "no memory for a YAML map");
        return 0;
}

static int read_mapping(struct reader *r, unsigned depth, json_t *object)
{
        for (;;) {
                yaml_event_t event;
                int e = next_event(r, &event);
                bool end;

                if (e < 0)
                        return e;
                end = event.type == YAML_MAPPING_END_EVENT;
                if (!end)
                        e = read_pair(r, &event, depth, object);
                yaml_event_delete(&event);
                if (e < 0 || end)
                        return e;
        }
}

static int remember(struct reader *r, yaml_mark_t mark, const yaml_char_t *name, json_t *value)
{
        char *copy;

        if (name == NULL)
                return 0;
        if (r->anchor_count == ANCHORS_MAX)
                return fail_at(r, mark, "too many anchors");
        copy = strdup((const char *) name);
        if (copy == NULL)
                return err_set(r->err, -ENOMEM, "no memory for an anchor");
        r->anchors[r->anchor_count++] = (struct anchor){ copy, json_incref(value) };
        return 0;
}

static void forget_anchors(struct reader *r)
{
        for (size_t i = 0; i < r->anchor_count; i++) {
                free(r->anchors[i].name);
                json_decref(r->anchors[i].value);
        }
        r->anchor_count = 0;
}

/* An alias becomes a copy: callers may change what they get without changing it elsewhere. */
static int expand(struct reader *r, const yaml_event_t *event, json_t **ret)
{
        const char *name = (const char *) event->data.alias.anchor;

        for (size_t i = r->anchor_count; i-- > 0;) {
                if (strcmp(r->anchors[i].name, name) != 0)
                        continue;
                r->value_count += count_values(r->anchors[i].value);
                if (r->value_count > VALUES_MAX)
                        return fail_at(r, event->start_mark, "aliases expand to too many values");
                *ret = json_deep_copy(r->anchors[i].value);
                return *ret == NULL ? err_set(r->err, -ENOMEM, "no memory for an alias") : 0;
        }
        return fail_at(r, event->start_mark, "an alias to an anchor that is not there (or not complete)");
}

static const yaml_char_t *anchor_of(const yaml_event_t *event)
{
        if (event->type == YAML_SCALAR_EVENT)
                return event->data.scalar.anchor;
        return event->type == YAML_MAPPING_START_EVENT ? event->data.mapping_start.anchor
                                                       : event->data.sequence_start.anchor;
}

static const yaml_char_t *tag_of(const yaml_event_t *event)
{
        switch (event->type) {
        case YAML_SCALAR_EVENT:
                return event->data.scalar.tag;
        case YAML_SEQUENCE_START_EVENT:
                return event->data.sequence_start.tag;
        case YAML_MAPPING_START_EVENT:
                return event->data.mapping_start.tag;
        default:
                return NULL;
        }
}

static int read_collection(struct reader *r, const yaml_event_t *event, unsigned depth, json_t **ret)
{
        bool mapping = event->type == YAML_MAPPING_START_EVENT;
        json_t *value = mapping ? json_object() : json_array();
        int e;

        if (value == NULL)
                return err_set(r->err, -ENOMEM, "no memory to read YAML");
        e = mapping ? read_mapping(r, depth + 1, value) : read_sequence(r, depth + 1, value);
        if (e < 0)
                json_decref(value);
        else
                *ret = value;
        return e;
}

static int read_value(struct reader *r, yaml_event_t *event, unsigned depth, json_t **ret)
{
        json_t *value = NULL;
        int e;

        if (depth >= YAML_PARSE_MAX_DEPTH)
                return fail_at(r, event->start_mark, "nested too deeply");
        if (++r->value_count > VALUES_MAX)
                return fail_at(r, event->start_mark, "too many values");
        if (tag_of(event) != NULL)
                return fail_at(r, event->start_mark, "tags ('!') are not supported");
        if (event->type == YAML_ALIAS_EVENT)
                return expand(r, event, ret);
        if (event->type == YAML_SCALAR_EVENT)
                e = scalar(r, event, &value);
        else
                e = read_collection(r, event, depth, &value);
        if (e < 0)
                return e;
        e = remember(r, event->start_mark, anchor_of(event), value);
        if (e < 0)
                json_decref(value);
        else
                *ret = value;
        return e;
}

static int read_document(struct reader *r, json_t *documents)
{
        yaml_event_t event;
        json_t *value = NULL;
        int e = next_event(r, &event);

        if (e < 0)
                return e;
        e = read_value(r, &event, 0, &value);
        yaml_event_delete(&event);
        forget_anchors(r);
        if (e < 0)
                return e;
        if (json_is_null(value)) {
                json_decref(value);
                value = json_object();
        }
        if (json_array_append_new(documents, value) < 0)
                return err_set(r->err, -ENOMEM, "no memory to read YAML");
        return 0;
}

static int read_stream(struct reader *r, json_t *documents)
{
        for (;;) {
                yaml_event_t event;
                yaml_event_type_t type;
                int e = next_event(r, &event);

                if (e < 0)
                        return e;
                type = event.type;
                yaml_event_delete(&event);
                if (type == YAML_STREAM_END_EVENT)
                        return 0;
                if (type == YAML_DOCUMENT_START_EVENT)
                        e = read_document(r, documents);
                if (e < 0)
                        return e;
        }
}

static int parse_yaml(const char *bytes, size_t size_bytes, json_t *documents, struct err *err)
{
        struct reader *r = calloc(1, sizeof(*r));
        int e;

        if (r == NULL || !yaml_parser_initialize(&r->parser)) {
                free(r);
                return err_set(err, -ENOMEM, "no memory to read YAML");
        }
        r->err = err;
        yaml_parser_set_input_string(&r->parser, (const unsigned char *) (bytes != NULL ? bytes : ""),
                                     size_bytes);
        e = read_stream(r, documents);
        forget_anchors(r);
        yaml_parser_delete(&r->parser);
        free(r);
        return e;
}

/* JSON is YAML, and jansson reads it ten times faster. What it refuses is judged, and explained, as YAML. */
static bool parse_json(const char *bytes, size_t size_bytes, json_t *documents)
{
        size_t skip = 0;
        json_t *value;

        while (skip < size_bytes && strchr(" \t\r\n", bytes[skip]) != NULL && bytes[skip] != '\0')
                skip++;
        if (skip == size_bytes || (bytes[skip] != '{' && bytes[skip] != '['))
                return false;
        value = json_loadb(bytes, size_bytes, JSON_REJECT_DUPLICATES, NULL);
        return value != NULL && json_array_append_new(documents, value) == 0;
}

int yaml_parse_all(const char *bytes, size_t size_bytes, json_t **ret, struct err *err)
{
        json_t *documents;
        int e = 0;

        if (size_bytes > YAML_PARSE_MAX_BYTES)
                return err_set(err, -E2BIG, "%zu bytes; at most %zu are read", size_bytes,
                               YAML_PARSE_MAX_BYTES);
        documents = json_array();
        if (documents == NULL)
                return err_set(err, -ENOMEM, "no memory to read YAML");
        if (!parse_json(bytes, size_bytes, documents))
                e = parse_yaml(bytes, size_bytes, documents, err);
        if (e < 0)
                json_decref(documents);
        else
                *ret = documents;
        return e;
}

int yaml_parse(const char *bytes, size_t size_bytes, json_t **ret, struct err *err)
{
        json_t *documents = NULL, *value = NULL;
        int e = yaml_parse_all(bytes, size_bytes, &documents, err);

        if (e < 0)
                return e;
        if (json_array_size(documents) > 1)
                e = err_set(err, -EBADMSG, "%zu documents ('---') where one is expected",
                            json_array_size(documents));
        else if (json_array_size(documents) == 0) {
                value = json_object();
                e = value == NULL ? err_set(err, -ENOMEM, "no memory to read YAML") : 0;
        } else
                value = json_incref(json_array_get(documents, 0));
        json_decref(documents);
        if (e == 0)
                *ret = value;
        return e;
}
