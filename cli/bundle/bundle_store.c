/* The store tells its objects from the loop, then that those of a kind are all. */
#include "cli/bundle/bundle_store.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/bundle/bundle_prune.h"
#include "io/loop.h"
#include "io/read_file.h"
#include "store/store.h"

#define EVENTS_TAIL_BYTES ((size_t) 1 << 20)
#define EVENTS_MAX_BYTES  ((size_t) 256 << 20)

/* clang-format off */
static const struct {
        enum store_kind kind;
        const char *name;
        json_t *(*prune)(const json_t *object);
} kinds[] = {
        { STORE_NODE, "nodes.json", bundle_prune_node },
        { STORE_INVENTORY, "nodeaccelerators.json", bundle_prune_other },
        { STORE_TRAINING_JOB, "trainingjobs.json", bundle_prune_job },
        { STORE_SPEED_TABLE, "speedtables.json", bundle_prune_other },
        { STORE_POD, "pods.json", bundle_prune_job_pod },
};
/* clang-format on */

static json_t *prune(const struct bundle_store_found *found, size_t i, const json_t *object)
{
        return kinds[i].kind == STORE_POD && found->job_logs ? bundle_prune_pod(object)
                                                             : kinds[i].prune(object);
}

static void on_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        struct bundle_store_found *found = userdata;

        (void) key;
        for (size_t i = 0; i < ARRAY_SIZE(kinds) && object != NULL; i++)
                if (kinds[i].kind == kind)
                        (void) json_array_append_new(found->items[kind], prune(found, i, object));
}

static void on_synced(void *userdata, enum store_kind kind)
{
        ((struct bundle_store_found *) userdata)->synced |= 1u << kind;
}

static void on_trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        bundle_miss(((struct bundle_store_found *) userdata)->bundle, store_kind_name(kind), "%s", sentence);
}

static void wait_until_read(const struct bundle_store_found *found, sd_event *loop)
{
        uint64_t now = loop_now_usec(loop), end = now + BUNDLE_SOURCE_USEC;

        for (; now < end && (found->synced & found->wanted) != found->wanted; now = loop_now_usec(loop))
                if (sd_event_run(loop, end - now) < 0)
                        return;
}

/* events.jsonl: the last MiB, from the beginning of a line. */
static void add_events(struct bundle *bundle, const char *spec)
{
        CLEANUP(free_p) char *bytes = NULL;
        const char *begin;
        struct err err = { 0 };
        char path[4096];
        size_t size = 0;

        if (!text_format(path, sizeof(path), "%s/events.jsonl", store_directory(spec)))
                return;
        if (read_file(path, EVENTS_MAX_BYTES, &bytes, &size, &err) < 0) {
                bundle_miss(bundle, "events of the store", "%s", err.msg);
                return;
        }
        begin = size <= EVENTS_TAIL_BYTES ? bytes
                                          : memchr(bytes + size - EVENTS_TAIL_BYTES, '\n', EVENTS_TAIL_BYTES);
        if (begin != NULL)
                bundle_add_bytes(bundle, "store", BUNDLE_PARTS("events.jsonl"), begin,
                                 size - (size_t) (begin - bytes));
}

int bundle_store_read(const char *spec, sd_event *loop, struct bundle_store_found *found, struct err *err)
{
        struct store_options options = { .spec = spec,
                                         .changed = on_changed,
                                         .synced = on_synced,
                                         .trouble = on_trouble,
                                         .userdata = found };
        struct store *store = NULL;
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                found->wanted |= 1u << kinds[i].kind;
                found->items[kinds[i].kind] = json_array();
        }
        options.kinds = found->wanted;
        r = store_open(loop, &options, &store, err);
        if (r < 0)
                return r;
        wait_until_read(found, loop);
        store_close(store);
        for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
                if ((found->synced & 1u << kinds[i].kind) == 0)
                        bundle_miss(found->bundle, kinds[i].name, "the store did not tell all of it in time");
                bundle_add_json(found->bundle, "store", BUNDLE_PARTS(kinds[i].name),
                                json_incref(found->items[kinds[i].kind]));
        }
        add_events(found->bundle, spec);
        return 0;
}

void bundle_store_found_free(struct bundle_store_found *found)
{
        for (size_t i = 0; i < STORE_KIND_COUNT; i++)
                json_decref(found->items[i]);
        *found = (struct bundle_store_found){ 0 };
}
