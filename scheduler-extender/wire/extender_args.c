/* ExtenderArgs, scanned in place; a name that is sent twice is found by what it means, not by how it is
 * written. */
#include "scheduler-extender/wire/extender_args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"

/* What is kept while the lists are read. */
struct reading {
        struct json_scan scan;
        struct extender_args *args;
        struct roster *roster;
        struct names_memory_list *list;
        size_t object_capacity;
        uint32_t expected; /* index of the node that is likely to be named next */
        uint32_t before;   /* ... that was named last; ROSTER_NONE = none yet */
        size_t unknown;
        struct err *err;
};

static int add_object(struct reading *r, const struct json_scan_slice *object)
{
        size_t capacity = r->object_capacity == 0 ? r->roster->count + 64u : r->object_capacity * 2;
        struct json_scan_slice *grown = r->args->objects;

        if (r->list->count == r->object_capacity) {
                grown = realloc(grown, capacity * sizeof(*grown));
                if (grown == NULL)
                        return err_set(r->err, -ENOMEM, "no memory for %zu nodes", capacity);
                r->args->objects = grown;
                r->object_capacity = capacity;
        }
        r->args->objects[r->list->count] = *object;
        return 0;
}

static int add_node(struct reading *r, const struct json_scan_slice *name, uint32_t index,
                    const struct json_scan_slice *object)
{
        struct names_memory_list *list = r->list;
        size_t i = list->count;
        bool again = false;

        if (i == EXTENDER_ARGS_NODES_MAX)
                return err_set(r->err, -E2BIG, "more than %zu nodes are sent", EXTENDER_ARGS_NODES_MAX);
        if (i == list->capacity && !names_memory_grow(list, r->roster->count + 64u))
                return err_set(r->err, -ENOMEM, "no memory for more than %zu nodes", i);
        if (object != NULL && add_object(r, object) < 0)
                return -ENOMEM;
        if (index != ROSTER_NONE) {
                again = !roster_named(r->roster, r->before, index);
                r->before = index;
                r->expected = r->roster->seats[index].next;
        } else {
                r->unknown++;
        }
        list->names[i] =
                (struct names_memory_name){ .escaped = name->bytes, .escaped_bytes = name->size_bytes };
        list->nodes[i] = index;
        list->again[i] = again ? EXTENDER_ARGS_AGAIN : REASON_NONE;
        list->any_again = list->any_again || again;
        list->count++;
        return 0;
}

/* Adds the node of this name, known or not. No JSON reader of ours takes a NUL, and a reply has the name. */
static int add_named(struct reading *r, const struct json_scan_slice *name,
                     const struct json_scan_slice *object)
{
        CLEANUP(free_p) char *plain = NULL;
        size_t bytes;

        if (!name->escaped)
                return add_node(r, name, roster_find(r->roster, name->bytes, name->size_bytes), object);
        plain = malloc(name->size_bytes + 1);
        if (plain == NULL)
                return err_set(r->err, -ENOMEM, "no memory for a name");
        bytes = json_scan_slice_unescape(name, plain);
        if (memchr(plain, '\0', bytes) != NULL)
                return err_set(r->err, -EBADMSG, "the name of node %zu has a NUL (\\u0000) in it",
                               r->list->count);
        return add_node(r, name, roster_find(r->roster, plain, bytes), object);
}

static int scan_unexpected(struct reading *r)
{
        struct json_scan_slice name;
        int result = json_scan_string(&r->scan, &name, r->err);

        return result < 0 ? result : add_named(r, &name, NULL);
}

static int scan_name(struct reading *r)
{
        struct json_scan_slice name = { 0 };
        const char *at = r->scan.at;

        while (at < r->scan.end && *at == ' ')
                at++;
        name.bytes = at + 1;
        if (at < r->scan.end && *at == '"')
                name.size_bytes = roster_expects(r->roster, r->expected, at + 1, r->scan.end);
        if (name.size_bytes == 0)
                return scan_unexpected(r);
        r->scan.at = at + name.size_bytes + 2;
        return add_node(r, &name, r->expected, NULL);
}

static int scan_names(struct reading *r)
{
        int result = json_scan_open(&r->scan, '[', r->err);

        if (result == 0)
                result = json_scan_more(&r->scan, ']', true, r->err);
        while (result == 1) {
                result = scan_name(r);
                if (result < 0)
                        break;
                if (r->scan.at < r->scan.end && *r->scan.at == ',') { /* the usual case, in line */
                        r->scan.at++;
                        result = 1;
                } else {
                        result = json_scan_more(&r->scan, ']', false, r->err);
                }
        }
        return result;
}

/* metadata.name of a Node object. `found` stays empty when there is none. */
static int scan_name_in(struct json_scan *scan, bool in_metadata, struct json_scan_slice *found,
                        struct err *err)
{
        bool first = true;
        int r = json_scan_open(scan, '{', err);

        while (r == 0) {
                struct json_scan_slice key, value;

                r = json_scan_more(scan, '}', first, err);
                if (r <= 0)
                        break;
                first = false;
                r = json_scan_key(scan, &key, err);
                if (r < 0)
                        break;
                if (!in_metadata && json_scan_slice_is(&key, "metadata") && json_scan_kind(scan) == '{')
                        r = scan_name_in(scan, true, found, err);
                else if (in_metadata && json_scan_slice_is(&key, "name") && json_scan_kind(scan) == '"')
                        r = json_scan_string(scan, found, err);
                else
                        r = json_scan_value(scan, &value, err);
        }
        return r;
}

static int scan_node_object(struct reading *r)
{
        struct json_scan_slice object = { 0 }, name = { 0 };
        int result;

        (void) json_scan_kind(&r->scan);
        object.bytes = r->scan.at;
        result = scan_name_in(&r->scan, false, &name, r->err);
        if (result < 0)
                return result;
        object.size_bytes = (size_t) (r->scan.at - object.bytes);
        if (name.bytes == NULL)
                return err_set(r->err, -EBADMSG, "Nodes.items[%zu].metadata.name: is missing",
                               r->list->count);
        return add_named(r, &name, &object);
}

static int scan_items(struct reading *r)
{
        bool first = true;
        int result;

        if (json_scan_kind(&r->scan) == 'n')
                return json_scan_null(&r->scan, r->err);
        result = json_scan_open(&r->scan, '[', r->err);
        while (result == 0) {
                result = json_scan_more(&r->scan, ']', first, r->err);
                if (result <= 0)
                        break;
                first = false;
                result = scan_node_object(r);
        }
        return result;
}

static int scan_node_list(struct reading *r)
{
        bool first = true, seen = false;
        int result = json_scan_open(&r->scan, '{', r->err);

        while (result == 0) {
                struct json_scan_slice key, value;

                result = json_scan_more(&r->scan, '}', first, r->err);
                if (result <= 0)
                        break;
                first = false;
                result = json_scan_key(&r->scan, &key, r->err);
                if (result < 0)
                        break;
                if (!json_scan_slice_is(&key, "items")) {
                        result = json_scan_value(&r->scan, &value, r->err);
                } else if (seen) {
                        result = err_set(r->err, -EBADMSG, "Nodes.items: is given twice");
                } else {
                        seen = true;
                        result = scan_items(r);
                }
        }
        return result;
}

/* What has been seen of ExtenderArgs. */
struct args_parts {
        struct json_scan_slice pod;
        bool has_pod, has_nodes, has_names;
};

static int seen_twice(bool *seen, const char *name, struct err *err)
{
        if (*seen)
                return err_set(err, -EBADMSG, "%s: is given twice", name);
        *seen = true;
        return 0;
}

/* A set of names by what they mean: escapes are taken away first. */
struct name_set {
        struct json_scan_slice *names; /* decoded */
        uint32_t *slots;               /* index + 1 */
        size_t slot_count;
        char *text; /* of the decoded names that have escapes */
};

static bool add_name(struct name_set *set, uint32_t i)
{
        const struct json_scan_slice *name = &set->names[i];
        size_t at = (size_t) hash_bytes(name->bytes, name->size_bytes, 0) & (set->slot_count - 1);

        for (; set->slots[at] != 0; at = (at + 1) & (set->slot_count - 1)) {
                const struct json_scan_slice *other = &set->names[set->slots[at] - 1];

                if (other->size_bytes == name->size_bytes &&
                    memcmp(other->bytes, name->bytes, name->size_bytes) == 0)
                        return false;
        }
        set->slots[at] = i + 1;
        return true;
}

/* Every unknown name decoded, `set->text` being large enough for all. */
static void decode_unknown(const struct names_memory_list *list, struct name_set *set)
{
        char *text = set->text;
        uint32_t count = 0;

        for (size_t i = 0; i < list->count; i++) {
                const struct names_memory_name *name = &list->names[i];
                struct json_scan_slice slice = { .bytes = name->escaped, .size_bytes = name->escaped_bytes };

                if (list->nodes[i] != ROSTER_NONE)
                        continue;
                set->names[count].bytes = text;
                set->names[count].size_bytes = json_scan_slice_unescape(&slice, text);
                text += set->names[count++].size_bytes;
        }
}

static int mark_unknown_repeats(struct reading *r)
{
        CLEANUP(free_p) struct json_scan_slice *names = malloc(r->unknown * sizeof(*names));
        CLEANUP(free_p) char *text = NULL;
        CLEANUP(free_p) uint32_t *slots = NULL;
        struct name_set set = { .names = names, .slot_count = 64 };
        struct names_memory_list *list = r->list;
        size_t bytes = 1;
        uint32_t count = 0;

        while (set.slot_count < 2 * r->unknown)
                set.slot_count *= 2;
        for (size_t i = 0; i < list->count; i++)
                bytes += list->nodes[i] == ROSTER_NONE ? list->names[i].escaped_bytes : 0;
        set.text = text = malloc(bytes);
        set.slots = slots = calloc(set.slot_count, sizeof(*slots));
        if (names == NULL || text == NULL || slots == NULL)
                return err_set(r->err, -ENOMEM, "no memory for the names");
        decode_unknown(list, &set);
        for (size_t i = 0; i < list->count; i++)
                if (list->nodes[i] == ROSTER_NONE && !add_name(&set, count++)) {
                        list->again[i] = EXTENDER_ARGS_AGAIN;
                        list->any_again = true;
                }
        return 0;
}

static void begin_list(struct reading *r)
{
        r->list = names_memory_begin(r->args->memory);
        r->unknown = 0;
        r->before = ROSTER_NONE;
        r->expected = r->roster->first;
        roster_begin(r->roster);
}

/* The list is whole: @text_end is where the text that its names are in ends. */
static int end_list(struct reading *r, const char *text_end)
{
        struct extender_args *args = r->args;

        args->verdicts = names_memory_verdicts(args->memory, r->list);
        if (args->verdicts == NULL)
                return err_set(r->err, -ENOMEM, "no memory for the verdicts");
        args->list = r->list;
        args->node_count = r->list->count;
        args->names = r->list->names;
        args->nodes = r->list->nodes;
        args->any_again = r->list->any_again;
        args->end = text_end;
        return 0;
}

static int read_names(struct reading *r)
{
        const char *text = r->scan.at;
        int result;

        begin_list(r);
        result = scan_names(r);
        if (result == 0 && r->unknown > 1)
                result = mark_unknown_repeats(r);
        if (result == 0)
                names_memory_keep(r->list, r->roster, text, (size_t) (r->scan.at - text));
        return result < 0 ? err_wrap(r->err, result, "NodeNames") : 0;
}

/* Names are what counts where both lists are given. */
static int take_names(struct reading *r)
{
        char kind = json_scan_kind(&r->scan);
        int result = 0;

        if (kind == 'n')
                return json_scan_null(&r->scan, r->err);
        r->args->full = false;
        r->args->named = true;
        r->list = names_memory_find(r->args->memory, r->roster, r->scan.at, r->scan.end);
        if (r->list != NULL)
                r->scan.at += r->list->text_bytes;
        else
                result = read_names(r);
        if (result < 0)
                return result;
        return end_list(r, r->list->text_bytes > 0 ? r->list->text + r->list->text_bytes : r->scan.end);
}

static int take_nodes(struct reading *r)
{
        struct json_scan_slice ignored;
        int result;

        if (r->args->named || json_scan_kind(&r->scan) == 'n')
                return json_scan_value(&r->scan, &ignored, r->err);
        begin_list(r);
        r->args->full = true; /* and there are no nodes yet */
        result = scan_node_list(r);
        if (result == 0 && r->unknown > 1)
                result = mark_unknown_repeats(r);
        return result < 0 ? err_wrap(r->err, result, "Nodes") : end_list(r, r->scan.end);
}

static int take_member(struct reading *r, const struct json_scan_slice *key, struct args_parts *parts)
{
        struct json_scan_slice ignored;

        if (json_scan_slice_is(key, "Pod"))
                return seen_twice(&parts->has_pod, "Pod", r->err) < 0
                               ? -EBADMSG
                               : json_scan_value(&r->scan, &parts->pod, r->err);
        if (json_scan_slice_is(key, "Nodes"))
                return seen_twice(&parts->has_nodes, "Nodes", r->err) < 0 ? -EBADMSG : take_nodes(r);
        if (json_scan_slice_is(key, "NodeNames"))
                return seen_twice(&parts->has_names, "NodeNames", r->err) < 0 ? -EBADMSG : take_names(r);
        return json_scan_value(&r->scan, &ignored, r->err);
}

/* One pass over the text; the lists are taken as they come. */
static int scan_args(struct reading *r, struct args_parts *parts)
{
        bool first = true;
        int result = json_scan_open(&r->scan, '{', r->err);

        while (result == 0) {
                struct json_scan_slice key;

                result = json_scan_more(&r->scan, '}', first, r->err);
                if (result <= 0)
                        break;
                first = false;
                result = json_scan_key(&r->scan, &key, r->err);
                if (result == 0)
                        result = take_member(r, &key, parts);
        }
        return result < 0 ? result : json_scan_end(&r->scan, r->err);
}

static bool is_null(const struct json_scan_slice *slice)
{
        return slice->bytes == NULL || json_scan_slice_is(slice, "null");
}

static int decode_pod(const struct json_scan_slice *slice, json_t **ret, struct err *err)
{
        json_error_t where;

        if (is_null(slice))
                return err_set(err, -EBADMSG, "Pod: is missing");
        *ret = json_loadb(slice->bytes, slice->size_bytes, JSON_REJECT_DUPLICATES, &where);
        if (*ret == NULL)
                return err_set(err, -EBADMSG, "Pod: line %d, column %d: %s", where.line, where.column,
                               where.text);
        return json_is_object(*ret) ? 0 : err_set(err, -EBADMSG, "Pod: must be an object");
}

int extender_args_decode(const char *body, size_t body_bytes, struct roster *roster,
                         struct names_memory *memory, struct extender_args *ret, struct err *err)
{
        struct args_parts parts = { 0 };
        struct reading reading = {
                .scan = json_scan_text(body, body_bytes), .args = ret, .roster = roster, .err = err
        };
        int r;

        *ret = (struct extender_args){ .memory = memory };
        r = scan_args(&reading, &parts);
        return r == 0 ? decode_pod(&parts.pod, &ret->pod, err) : r;
}

void extender_args_free(struct extender_args *args)
{
        json_decref(args->pod);
        free(args->objects);
        if (args->memory != NULL)
                names_memory_end(args->memory);
        *args = (struct extender_args){ 0 };
}
