/* Publisher: the slices of this node are in the store as they should be, and stay so. */
#include "plugin/dra/publisher.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/backoff.h"
#include "base/cleanup.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "io/loop.h"
#include "plugin/dra/slices_stored.h"
#include "store/store_read.h"

#define FIRST_RETRY_USEC UINT64_C(500000)
#define MOST_RETRY_USEC  UINT64_C(30000000)
#define GONE_USEC        UINT64_C(50000) /* who takes one slice away takes the others next */

struct publisher {
        struct publisher_options options;
        struct store *store;
        bool synced;
        json_t *have; /* an object: our slices in the store, by name; what is being written counts */
        json_t *written, *dropped; /* by this round, likewise */
        uint64_t generation;       /* of the pool */
        bool taints;               /* written; until the API server drops them */
        bool kept;                 /* it does not: one was read back */
        unsigned waiting;          /* answers of the store */
        bool due;                  /* something changed meanwhile */
        unsigned failures;         /* in a row */
        bool failed;               /* since the last round began */
        json_t *reading;           /* the slice whose taints are read back; NULL = none */
        sd_event_source *timer;
};

static void reconcile(struct publisher *publisher);

static void say(const struct publisher *publisher, int priority, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static void say(const struct publisher *publisher, int priority, const char *fmt, ...)
{
        char line[600];
        va_list list;

        va_start(list, fmt);
        (void) vsnprintf(line, sizeof(line), fmt, list);
        va_end(list);
        publisher->options.log(publisher->options.userdata, priority, line);
}

static void on_timer(void *userdata)
{
        reconcile(userdata);
}

/* Which of its writes failed is not asked: all of them are due again. */
static void undo_round(const struct publisher *publisher)
{
        const char *name;
        json_t *slice;

        json_object_foreach(publisher->written, name, slice)(void) json_object_del(publisher->have, name);
        json_object_foreach(publisher->dropped, name, slice)(void)
                json_object_set(publisher->have, name, slice);
}

/* The last answer of a round: what is due now? */
static void settle(struct publisher *publisher)
{
        if (publisher->waiting > 0)
                return;
        if (publisher->failed) {
                undo_round(publisher);
                loop_rearm(publisher->timer,
                           backoff_usec(publisher->failures++, FIRST_RETRY_USEC, MOST_RETRY_USEC));
                return;
        }
        publisher->failures = 0;
        if (publisher->due)
                reconcile(publisher);
}

static void on_written(void *userdata, int result, const char *sentence)
{
        struct publisher *publisher = userdata;

        if (result == -ECANCELED)
                return; /* the store is being closed */
        publisher->waiting--;
        if (result < 0) {
                say(publisher, LOG_WARNING, "slices of %s: %s", publisher->options.node, sentence);
                publisher->failed = true;
        }
        settle(publisher);
}

static void on_dropped(void *userdata, int result, const char *sentence)
{
        on_written(userdata, result == -ENOENT ? 0 : result, sentence);
}

static void on_read_back(void *userdata, const json_t *object)
{
        struct publisher *publisher = userdata;

        if (!slices_stored_lost_taints(publisher->reading, object)) {
                publisher->kept = true;
                return;
        }
        publisher->taints = false;
        publisher->due = true;
        say(publisher, LOG_NOTICE,
            "slices of %s: this cluster drops taints (DRADeviceTaints is off): sick devices are left out",
            publisher->options.node);
}

static void on_read_answer(void *userdata, int result, const char *sentence)
{
        struct publisher *publisher = userdata;

        json_decref(TAKE(publisher->reading));
        (void) sentence;
        if (result == -ECANCELED)
                return;
        publisher->waiting--;
        settle(publisher);
}

/* The first taint: does it stay? */
static void on_tainted(void *userdata, int result, const char *sentence)
{
        struct publisher *publisher = userdata;

        if (result < 0) {
                json_decref(TAKE(publisher->reading));
                on_written(userdata, result, sentence);
                return;
        }
        store_read(publisher->store, STORE_RESOURCE_SLICE, NULL,
                   json_read_word(json_object_get(publisher->reading, "metadata"), "name"), on_read_back,
                   on_read_answer, publisher);
}

static void write_slice(struct publisher *publisher, json_t *slice)
{
        const char *name = json_read_word(json_object_get(slice, "metadata"), "name");
        bool look = !publisher->kept && publisher->reading == NULL && slices_stored_lost_taints(slice, NULL);

        if (look)
                publisher->reading = json_incref(slice);
        publisher->waiting++;
        (void) json_object_set(publisher->have, name, slice);
        (void) json_object_set(publisher->written, name, slice);
        store_put(publisher->store, STORE_RESOURCE_SLICE, NULL, name, slice, look ? on_tainted : on_written,
                  publisher);
}

/* Slices beyond those that should be there. */
static void drop_surplus(struct publisher *publisher, const json_t *wanted)
{
        const char *name;
        json_t *slice;
        void *next;

        json_object_foreach_safe(publisher->have, next, name, slice)
        {
                if (json_object_get(wanted, name) != NULL)
                        continue;
                publisher->waiting++;
                store_delete(publisher->store, STORE_RESOURCE_SLICE, NULL, name, NULL, 0, on_dropped,
                             publisher);
                (void) json_object_set(publisher->dropped, name, slice);
                (void) json_object_del(publisher->have, name);
        }
}

static json_t *by_name(const json_t *slices)
{
        json_t *object = json_object(), *slice;
        size_t i;

        json_array_foreach((json_t *) slices, i, slice)(void)
                json_object_set(object, json_read_word(json_object_get(slice, "metadata"), "name"), slice);
        return object;
}

/* How many of the slices would have to change, that go or come included. */
static size_t count_changes(const struct publisher *publisher, const json_t *wanted)
{
        size_t changes = 0;
        const char *name;
        json_t *slice;

        json_object_foreach((json_t *) wanted, name, slice) changes +=
                !slices_stored_same(slice, json_object_get(publisher->have, name), true);
        json_object_foreach(publisher->have, name, slice) changes += json_object_get(wanted, name) == NULL;
        return changes;
}

static json_t *build(const struct publisher *publisher)
{
        json_t *slices = publisher->options.build(publisher->options.userdata, publisher->generation,
                                                  publisher->taints),
               *wanted = slices == NULL ? NULL : by_name(slices);

        json_decref(slices);
        return wanted;
}

/* Readers take a pool for whole when all of its slices have one generation: where one slice changes they are,
 * with the generation of before; where more do, with a new one. None there: nobody knows of any. */
static void reconcile(struct publisher *publisher)
{
        json_t *wanted, *slice;
        const char *name;

        if (!publisher->synced || publisher->store == NULL)
                return;
        publisher->due = publisher->waiting > 0;
        if (publisher->due)
                return;
        publisher->failed = false;
        (void) json_object_clear(publisher->written);
        (void) json_object_clear(publisher->dropped);
        wanted = build(publisher);
        if (wanted == NULL)
                return;
        if (json_object_size(publisher->have) > 0 && count_changes(publisher, wanted) > 1) {
                publisher->generation++;
                json_decref(wanted);
                wanted = build(publisher);
        }
        if (wanted == NULL)
                return;
        publisher->waiting++; /* ourselves: an answer may come from within */
        drop_surplus(publisher, wanted);
        json_object_foreach(wanted, name,
                            slice) if (!slices_stored_same(slice, json_object_get(publisher->have, name),
                                                           false)) write_slice(publisher, slice);
        json_decref(wanted);
        publisher->waiting--;
        settle(publisher);
}

int publisher_new(sd_event *loop, const struct publisher_options *options, struct publisher **ret,
                  struct err *err)
{
        struct publisher *publisher = calloc(1, sizeof(*publisher));

        if (publisher == NULL)
                return err_set(err, -ENOMEM, "no memory for the slices");
        publisher->options = *options;
        publisher->taints = true;
        publisher->generation = 1;
        publisher->have = json_object();
        publisher->written = json_object();
        publisher->dropped = json_object();
        if (publisher->have == NULL || publisher->written == NULL || publisher->dropped == NULL ||
            loop_timer(loop, on_timer, publisher, &publisher->timer) < 0) {
                publisher_free(publisher);
                return err_set(err, -ENOMEM, "no memory for the slices");
        }
        *ret = publisher;
        return 0;
}

void publisher_free(struct publisher *publisher)
{
        if (publisher == NULL)
                return;
        (void) sd_event_source_disable_unref(publisher->timer);
        json_decref(publisher->have);
        json_decref(publisher->written);
        json_decref(publisher->dropped);
        json_decref(publisher->reading);
        free(publisher);
}

void publisher_set_store(struct publisher *publisher, struct store *store)
{
        publisher->store = store;
}

void publisher_changed(struct publisher *publisher, const char *key, const json_t *object)
{
        uint64_t generation = 0;

        if (object != NULL && slices_stored_is_ours(object, publisher->options.node, &generation)) {
                (void) json_object_set_new(publisher->have, key, json_deep_copy(object));
                if (generation > publisher->generation)
                        publisher->generation = generation;
        } else if (json_object_del(publisher->have, key) < 0) {
                return; /* another's, or known to be gone */
        }
        if (publisher->synced && !loop_is_armed(publisher->timer))
                loop_rearm(publisher->timer, GONE_USEC);
}

void publisher_synced(struct publisher *publisher)
{
        publisher->synced = true;
        reconcile(publisher);
}

void publisher_update(struct publisher *publisher)
{
        if (!loop_is_armed(publisher->timer) || publisher->failures == 0)
                reconcile(publisher);
}
