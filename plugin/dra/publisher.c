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
#include "plugin/dra/slices.h"
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
        unsigned features;         /* slices_feature: written, until the API server drops or refuses it */
        unsigned kept;             /* it does not: a slice with it was read */
        unsigned looked;   /* a slice with it was to be read, and could not be; until the next write */
        unsigned waiting;  /* answers of the store */
        bool due;          /* something changed meanwhile */
        bool early;        /* slices wait until it is not */
        bool followed;     /* likewise */
        unsigned failures; /* in a row */
        bool failed;       /* since the last round began */
        unsigned refused;  /* slices_feature: that it was refused for, likewise */
        json_t *reading;   /* the slice that is read back; NULL = none */
        sd_event_source *timer;
        uint64_t writes_total, drops_total, failures_total;
};

static void reconcile(struct publisher *publisher);
static void settle(struct publisher *publisher);

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

static const char *const feature_words[][2] = {
        { "taints (DRADeviceTaints)", "sick devices are left out" },
        { "counters (DRAPartitionableDevices)", "whole groups and chips are not offered as one device" },
        { "shares (DRAConsumableCapacity)", "a claim has a chip alone" },
};

static void give_up(struct publisher *publisher, unsigned features, const char *does)
{
        for (unsigned i = 0; i < ARRAY_SIZE(feature_words); i++)
                if ((features & publisher->features & 1U << i) != 0)
                        say(publisher, LOG_NOTICE, "slices of %s: this cluster %s %s: %s",
                            publisher->options.node, does, feature_words[i][0], feature_words[i][1]);
        publisher->features &= ~features;
        publisher->due = true;
}

/* What is not known to be kept. */
static unsigned doubtful(const struct publisher *publisher, const json_t *slice)
{
        return slices_stored_features(slice) & publisher->features & ~publisher->kept & ~publisher->looked;
}

static void on_read_back(void *userdata, const json_t *object)
{
        struct publisher *publisher = userdata;
        unsigned wrote = doubtful(publisher, publisher->reading), has = slices_stored_features(object);

        publisher->kept |= wrote & has;
        publisher->due = true;
        if ((wrote & ~has) != 0)
                give_up(publisher, wrote & ~has, "drops");
}

static void on_read_answer(void *userdata, int result, const char *sentence)
{
        struct publisher *publisher = userdata;

        (void) sentence;
        if (result != 0)
                publisher->looked |= slices_stored_features(publisher->reading);
        json_decref(TAKE(publisher->reading));
        if (result == -ECANCELED)
                return;
        publisher->waiting--;
        settle(publisher);
}

/* One slice of a round is read at a time: the next one is looked for when it is. */
static bool read_back(struct publisher *publisher)
{
        const char *name;
        json_t *slice;

        json_object_foreach(publisher->written, name, slice)
        {
                if (doubtful(publisher, slice) == 0)
                        continue;
                publisher->reading = json_incref(slice);
                publisher->waiting++;
                store_read(publisher->store, STORE_RESOURCE_SLICE, NULL, name, on_read_back, on_read_answer,
                           publisher);
                return true;
        }
        return false;
}

/* An API server of before may know the fields in another shape, and names them as it refuses a slice. */
static unsigned features_named(const char *sentence)
{
        unsigned features = 0;

        if (strstr(sentence, "sharedCounters") != NULL || strstr(sentence, "consumesCounters") != NULL)
                features |= SLICES_COUNTERS;
        if (strstr(sentence, "allowMultipleAllocations") != NULL || strstr(sentence, "requestPolicy") != NULL)
                features |= SLICES_SHARES;
        return features;
}

/* The last answer of a round: what is due now? */
static void settle(struct publisher *publisher)
{
        bool again = (publisher->refused & publisher->features) != 0;

        if (publisher->waiting > 0)
                return;
        if (publisher->failed) {
                if (again)
                        give_up(publisher, publisher->refused, "refuses");
                undo_round(publisher);
                loop_rearm(publisher->timer,
                           again ? GONE_USEC
                                 : backoff_usec(publisher->failures++, FIRST_RETRY_USEC, MOST_RETRY_USEC));
                return;
        }
        publisher->failures = 0;
        if (!read_back(publisher) && publisher->due)
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
                publisher->refused |= result == -EINVAL ? features_named(sentence) : 0;
                publisher->failures_total++;
        }
        settle(publisher);
}

static void on_dropped(void *userdata, int result, const char *sentence)
{
        on_written(userdata, result == -ENOENT ? 0 : result, sentence);
}

static void write_slice(struct publisher *publisher, json_t *slice)
{
        const char *name = json_read_word(json_object_get(slice, "metadata"), "name");

        publisher->looked &= ~slices_stored_features(slice);
        publisher->waiting++;
        publisher->writes_total++;
        (void) json_object_set(publisher->have, name, slice);
        (void) json_object_set(publisher->written, name, slice);
        store_put(publisher->store, STORE_RESOURCE_SLICE, NULL, name, slice, on_written, publisher);
}

/* Slices beyond those that should be there; NULL = none should. */
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
                publisher->drops_total++;
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

/* How many of the slices are to change now, that go or come included; those that are early do not come. */
static size_t count_changes(const struct publisher *publisher, const json_t *wanted, bool early)
{
        size_t changes = 0;
        const char *name;
        json_t *slice;

        json_object_foreach((json_t *) wanted, name, slice)
        {
                const json_t *there = json_object_get(publisher->have, name);

                changes += !(early && there == NULL) && !slices_stored_same(slice, there, true);
        }
        json_object_foreach(publisher->have, name, slice) changes += json_object_get(wanted, name) == NULL;
        return changes;
}

static json_t *build(const struct publisher *publisher)
{
        json_t *slices = publisher->options.build(publisher->options.userdata, publisher->generation,
                                                  publisher->features, publisher->kept),
               *wanted = slices == NULL ? NULL : by_name(slices);

        json_decref(slices);
        return wanted;
}

static bool is_early(struct publisher *publisher, const json_t *wanted)
{
        bool lacks = false, early, before = publisher->early;
        const char *name;
        json_t *slice;

        json_object_foreach((json_t *) wanted, name, slice) lacks =
                lacks || json_object_get(publisher->have, name) == NULL;
        early = lacks && publisher->options.early(publisher->options.userdata);
        publisher->early = early;
        if (early && !before)
                say(publisher, LOG_INFO, "slices of %s: come when the kubelet has registered the driver",
                    publisher->options.node);
        return early;
}

/* Who came later is the one whom the kubelet asks, and whose word stands when both have gone on. */
static bool is_followed(struct publisher *publisher)
{
        bool before = publisher->followed;

        publisher->followed = publisher->options.followed(publisher->options.userdata);
        if (publisher->followed != before)
                say(publisher, LOG_INFO, "slices of %s: %s", publisher->options.node,
                    before ? "written by this instance again" : "left to an instance that came later");
        return publisher->followed;
}

static void write_round(struct publisher *publisher, const json_t *wanted, bool early)
{
        const char *name;
        json_t *slice;

        drop_surplus(publisher, wanted);
        json_object_foreach((json_t *) wanted, name, slice)
        {
                const json_t *there = json_object_get(publisher->have, name);

                if (!slices_stored_same(slice, there, false) && !(early && there == NULL))
                        write_slice(publisher, slice);
        }
}

/* No generation comes after the last there is, which somebody else wrote: a pool of it goes, and when it has
 * gone comes as one that nobody knows of. */
static void begin_anew(struct publisher *publisher)
{
        say(publisher, LOG_NOTICE, "slices of %s: made anew: no generation comes after theirs",
            publisher->options.node);
        publisher->due = true;
        drop_surplus(publisher, NULL);
}

/* Readers take a pool for whole when all of its slices have one generation: where one slice changes they are,
 * with the generation of before; where more do, with a new one. None there: nobody knows of any. */
static void reconcile(struct publisher *publisher)
{
        json_t *wanted;
        bool early, several, last;

        if (!publisher->synced || publisher->store == NULL)
                return;
        publisher->due = publisher->waiting > 0;
        if (publisher->due || is_followed(publisher))
                return;
        publisher->failed = false;
        publisher->refused = 0;
        (void) json_object_clear(publisher->written);
        (void) json_object_clear(publisher->dropped);
        if (json_object_size(publisher->have) == 0 && publisher->generation == INT64_MAX)
                publisher->generation = 1;
        wanted = build(publisher);
        if (wanted == NULL)
                return;
        early = is_early(publisher, wanted);
        several = json_object_size(publisher->have) > 0 && count_changes(publisher, wanted, early) > 1;
        last = publisher->generation == INT64_MAX;
        if (several && !last) {
                publisher->generation++;
                json_decref(wanted);
                wanted = build(publisher);
        }
        if (wanted == NULL)
                return;
        publisher->waiting++; /* ourselves: an answer may come from within */
        if (several && last)
                begin_anew(publisher);
        else
                write_round(publisher, wanted, early);
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
        publisher->features = SLICES_FEATURES;
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
                publisher->kept |= slices_stored_features(object);
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

void publisher_hurry(struct publisher *publisher)
{
        if (publisher->early || publisher->followed)
                publisher_update(publisher);
}

void publisher_count(const struct publisher *publisher, struct dra_status *ret)
{
        ret->slice_writes_total = publisher->writes_total;
        ret->slice_drops_total = publisher->drops_total;
        ret->slice_failures_total = publisher->failures_total;
}

bool publisher_is_empty(const struct publisher *publisher)
{
        return publisher->synced && publisher->waiting == 0 && !publisher->failed &&
               json_object_size(publisher->have) == 0;
}
