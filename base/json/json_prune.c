/* Walks down the paths and copies everything beside them whole. */
#include "base/json/json_prune.h"

#include <stdint.h>
#include <string.h>

#include "base/json/json_scan.h"

struct pruning {
        struct json_scan scan;
        const char *const *paths;
        const char *under;
        char *out;
        size_t size_bytes;
};

/* Where a value stands: the paths that lead through it, as bits, and how many of their names are behind. */
struct place {
        uint32_t open;
        unsigned depth;
        bool above; /* the paths begin in a member of this */
};

static void put(struct pruning *p, const char *bytes, size_t size_bytes)
{
        memcpy(p->out + p->size_bytes, bytes, size_bytes);
        p->size_bytes += size_bytes;
}

/* Does the path have this name at this depth? Return: what follows it, "" at its end; NULL = another one. */
static const char *follow(const char *path, unsigned depth, const struct json_scan_slice *name)
{
        if (memchr(name->bytes, '.', name->size_bytes) != NULL)
                return NULL;
        while (depth-- > 0)
                path = strchr(path, '.') + 1;
        if (strncmp(path, name->bytes, name->size_bytes) != 0 || strchr(".", path[name->size_bytes]) == NULL)
                return NULL;
        return path + name->size_bytes;
}

/* The place of a member. False: it is one of those that are left out. */
static bool enter(const struct pruning *p, struct place from, const struct json_scan_slice *name,
                  struct place *ret)
{
        if (from.above) {
                *ret = (struct place){ .open = json_scan_slice_is(name, p->under) ? from.open : 0 };
                return true;
        }
        *ret = (struct place){ .depth = from.depth + 1 };
        for (unsigned i = 0; i < JSON_PRUNE_PATHS_MAX && from.open >> i != 0; i++) {
                const char *rest = (from.open >> i & 1) != 0 ? follow(p->paths[i], from.depth, name) : NULL;

                if (rest != NULL && *rest == '\0')
                        return false;
                if (rest != NULL)
                        ret->open |= UINT32_C(1) << i;
        }
        return true;
}

static int copy_whole(struct pruning *p)
{
        struct json_scan_slice value;
        int r = json_scan_value(&p->scan, &value, NULL);

        if (r == 0)
                put(p, value.bytes, value.size_bytes);
        return r;
}

static int copy_object(struct pruning *p, struct place place);

/* An array of arrays is copied whole: how deep this goes is the paths' affair, not the text's. */
static int copy_array(struct pruning *p, struct place place)
{
        int r = json_scan_open(&p->scan, '[', NULL);

        put(p, "[", r == 0);
        for (bool first = true; r == 0; first = false) {
                r = json_scan_more(&p->scan, ']', first, NULL);
                if (r <= 0)
                        break;
                put(p, ",", !first);
                r = json_scan_kind(&p->scan) == '{' ? copy_object(p, place) : copy_whole(p);
        }
        put(p, "]", r == 0);
        return r;
}

static int copy_value(struct pruning *p, struct place place)
{
        int kind = place.open != 0 ? json_scan_kind(&p->scan) : 0;

        if (kind == '{')
                return copy_object(p, place);
        return kind == '[' ? copy_array(p, place) : copy_whole(p);
}

static int copy_object(struct pruning *p, struct place place)
{
        struct json_scan_slice name, ignored;
        bool any = false;
        int r = json_scan_open(&p->scan, '{', NULL);

        put(p, "{", r == 0);
        for (bool first = true; r == 0; first = false) {
                struct place inside = { 0 };

                r = json_scan_more(&p->scan, '}', first, NULL);
                if (r <= 0)
                        break;
                r = json_scan_key(&p->scan, &name, NULL);
                if (r < 0)
                        break;
                if (!enter(p, place, &name, &inside)) {
                        r = json_scan_value(&p->scan, &ignored, NULL);
                        continue;
                }
                put(p, ",", any);
                put(p, name.bytes - 1, name.size_bytes + 2); /* with its quotes */
                put(p, ":", 1);
                any = true;
                r = copy_value(p, inside);
        }
        put(p, "}", r == 0);
        return r;
}

size_t json_prune(const char *bytes, size_t size_bytes, const char *const *paths, const char *under,
                  char *out)
{
        struct pruning p = { .scan = json_scan_text(bytes, size_bytes), .paths = paths, .under = under };
        struct place whole = { .above = under != NULL };

        p.out = out;
        for (unsigned i = 0; i < JSON_PRUNE_PATHS_MAX && paths[i] != NULL; i++)
                whole.open |= UINT32_C(1) << i;
        if (copy_value(&p, whole) < 0 || json_scan_end(&p.scan, NULL) < 0)
                return 0;
        return p.size_bytes;
}
