/* Events are queued by view; a bind is one atomic change. */
#include "tests/model/views.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/budgets.h"
#include "store/store.h"
#include "tests/model/world.h"

struct event {
        struct event *next;
        enum store_kind kind;
        char key[64];
        json_t *object; /* NULL = gone */
        int pod;        /* -1 = of no pod */
        int node;       /* of an inventory */
        unsigned names;
        struct world_word word;
        bool recheck, fresh; /* as store.h has them */
        bool synced;         /* the end of a list, no object */
};

enum outcome { DONE, REPLY_LOST, NOT_DONE, LATE, ANSWER_ONLY };

struct write {
        struct write *next;
        enum outcome outcome;
        bool answered, evicts;
        int pod, node;
        unsigned uid;
        json_t *annotations;
        int result; /* of ANSWER_ONLY */
        store_answer answer;
        void *userdata;
};

struct store {
        struct store_options options;
        int replica;
        bool rechecking, fresh;
        bool refreshing; /* the list that was asked for is not delivered yet */
        struct event *first, **last;
        struct write *writes;
};

static struct store *views[STAND_INS_REPLICAS];
static struct event *queue(struct store *view, enum store_kind kind, const char *key, json_t *object)
{
        struct event *event = calloc(1, sizeof(*event));

        if (event == NULL)
                abort();
        event->kind = kind;
        event->pod = -1;
        (void) snprintf(event->key, sizeof(event->key), "%s", key);
        event->object = object;
        *view->last = event;
        view->last = &event->next;
        return event;
}

static void queue_node(struct store *view, int node)
{
        struct event *event;

        (void) queue(view, STORE_NODE, world_node_name(node), world_node_json(node));
        event = queue(view, STORE_INVENTORY, world_node_name(node), world_inventory_json(node));
        event->node = node;
        event->names = world.names[node];
}

static struct event *queue_pod(struct store *view, int index)
{
        const struct world_pod *pod = &world.pods[index];
        char key[64];
        struct event *event;

        (void) snprintf(key, sizeof(key), "%s/%s", pod->namespace_, pod->name);
        event = queue(view, STORE_POD, key, pod->exists ? world_pod_json(pod) : NULL);
        event->pod = index;
        if (pod->exists)
                event->word = (struct world_word){
                        .uid = pod->uid, .node = pod->node, .chips = pod->chips, .over = pod->ended
                };
        return event;
}

void views_tell_pod(int pod)
{
        for (int r = 0; r < STAND_INS_REPLICAS; r++)
                if (views[r] != NULL)
                        (void) queue_pod(views[r], pod);
}

void views_tell_node(int node)
{
        for (int r = 0; r < STAND_INS_REPLICAS; r++)
                if (views[r] != NULL)
                        queue_node(views[r], node);
}

static void drop_events(struct store *view)
{
        while (view->first != NULL) {
                struct event *event = view->first;

                view->first = event->next;
                json_decref(event->object);
                free(event);
        }
        view->last = &view->first;
}

static bool is_queued(const struct store *view, int pod)
{
        for (const struct event *event = view->first; event != NULL; event = event->next)
                if (event->pod == pod)
                        return true;
        return false;
}

/* @recheck: what was not on its way should have been known in just this form. */
static void list_all(struct store *view, bool recheck)
{
        bool late[WORLD_PODS], pods_first = chance_of(world.chance, 50);

        for (int i = 0; i < WORLD_PODS; i++)
                late[i] = !recheck || is_queued(view, i);
        drop_events(view);
        for (int n = 0; n < WORLD_NODES && !pods_first; n++)
                queue_node(view, n);
        for (int i = 0; i < WORLD_PODS; i++)
                if (world.pods[i].exists || world.told[view->replica][i].uid != 0) {
                        struct event *event = queue_pod(view, i);

                        event->recheck = !late[i];
                        event->fresh = recheck;
                }
        for (int n = 0; n < WORLD_NODES && pods_first; n++)
                queue_node(view, n);
        for (unsigned kind = 0; kind < STORE_KIND_COUNT; kind++)
                if (view->options.kinds & 1u << kind)
                        queue(view, (enum store_kind) kind, "", NULL)->synced = true;
}

void view_list_anew(int replica)
{
        if (views[replica] != NULL)
                list_all(views[replica], views[replica]->refreshing);
}

static void note(int replica, const struct event *event)
{
        struct world_word *told = &world.told[replica][event->pod],
                          *answered = &world.answered[replica][event->pod];

        if (event->object == NULL)
                told->over = true;
        else
                *told = event->word;
        if (told->over || told->node >= 0 || told->uid > answered->uid)
                *answered = (struct world_word){ .uid = 0 };
}

/* What a bind was answered, unless what came of the pod was told before. */
static void note_answer(int replica, int pod, unsigned uid, int node)
{
        const struct world_word *told = &world.told[replica][pod];

        if (told->uid < uid || (told->uid == uid && !told->over && told->node < 0))
                world.answered[replica][pod] =
                        (struct world_word){ .uid = uid, .node = node, .chips = world.pods[pod].chips };
}

bool view_deliver(int replica)
{
        struct store *view = views[replica];
        struct event *event = view == NULL ? NULL : view->first;

        if (event == NULL)
                return false;
        view->first = event->next;
        if (view->first == NULL)
                view->last = &view->first;
        view->rechecking = event->recheck;
        view->fresh = event->fresh;
        world.events++;
        if (event->pod >= 0)
                world_trace("tell r%d p%d u%u on %d recheck %d fresh %d %s", replica, event->pod,
                            event->word.uid, event->word.node, event->recheck, event->fresh,
                            event->object == NULL ? "gone"
                            : event->word.over    ? "ended"
                                                  : "");
        if (event->pod >= 0)
                note(replica, event);
        if (event->kind == STORE_INVENTORY && !event->synced)
                world.told_names[replica][event->node] = event->names;
        view->refreshing = view->refreshing && view->first != NULL;
        if (event->synced)
                view->options.synced(view->options.userdata, event->kind);
        else
                view->options.changed(view->options.userdata, event->kind, event->key, event->object);
        view->rechecking = view->fresh = false;
        json_decref(event->object);
        free(event);
        return true;
}

static struct write *add_write(struct store *view, enum outcome outcome, store_answer answer, void *userdata)
{
        struct write *write = calloc(1, sizeof(*write)), **place = &view->writes;

        if (write == NULL)
                abort();
        while (*place != NULL)
                place = &(*place)->next;
        *place = write;
        write->outcome = outcome;
        write->answer = answer;
        write->userdata = userdata;
        return write;
}

static int apply(struct write *write)
{
        struct world_pod *pod = &world.pods[write->pod];
        const char *urgency;

        world_trace("write p%d u%u to %d, late %d; it is u%u on %d", write->pod, write->uid, write->node,
                    write->answered, pod->uid, pod->exists ? pod->node : -2);
        if (!pod->exists)
                return -ENOENT;
        if (pod->uid != write->uid)
                return -ESTALE;
        if (write->evicts) {
                pod->deleting = true;
                world.evictions++;
                views_tell_pod(write->pod);
                return 0;
        }
        if (pod->node >= 0)
                return pod->node == write->node ? 0 : -EALREADY;
        if (pod->deleting || pod->ended)
                return -ESTALE;
        urgency = json_string_value(json_object_get(pod->labels, "remuda.dev/urgency"));
        pod->right =
                strcmp(pod->namespace_, "ops") == 0 && urgency != NULL && strcmp(urgency, "emergency") == 0;
        pod->node = write->node;
        (void) json_object_update(pod->annotations, write->annotations);
        world.binds++;
        if (world_held(write->node) > WORLD_CHIPS)
                world_break("chips booked twice", "%u of %d on %s after %s/%s", world_held(write->node),
                            WORLD_CHIPS, world_node_name(write->node), pod->namespace_, pod->name);
        views_tell_pod(write->pod);
        return 0;
}

static void take_off(struct store *view, struct write *write)
{
        struct write **place = &view->writes;

        while (*place != write)
                place = &(*place)->next;
        *place = write->next;
        json_decref(write->annotations);
        free(write);
}

static void answer_write(struct store *view, struct write *write)
{
        int result = write->result;

        if (write->outcome == DONE)
                result = apply(write);
        else if (write->outcome == REPLY_LOST)
                (void) apply(write);
        if (write->outcome == REPLY_LOST || write->outcome == NOT_DONE || write->outcome == LATE)
                result = -EIO;
        if (result == 0 && write->outcome == DONE && !write->evicts)
                note_answer(view->replica, write->pod, write->uid, write->node);
        if ((result == -ENOENT || result == -ESTALE) &&
            world.answered[view->replica][write->pod].uid == write->uid)
                world.answered[view->replica][write->pod] = (struct world_word){ .uid = 0 }; /* it is gone */
        write->answered = true;
        world_trace("answer r%d p%d u%u to %d: %d", view->replica, write->pod, write->uid, write->node,
                    result);
        if (write->answer != NULL)
                write->answer(write->userdata, result, result == 0 ? "" : "by chance");
        if (write->outcome != LATE)
                take_off(view, write);
}

bool view_answer(int replica)
{
        struct store *view = views[replica];
        struct write *write;
        size_t count = 0;

        for (write = view == NULL ? NULL : view->writes; write != NULL; write = write->next)
                count++;
        if (count == 0)
                return false;
        count = chance_below(world.chance, count);
        for (write = view->writes; count > 0; write = write->next)
                count--;
        if (!write->answered) {
                answer_write(view, write);
        } else {
                (void) apply(write); /* late: it was answered before */
                take_off(view, write);
        }
        return true;
}

void view_settle_late(int replica)
{
        struct store *view = views[replica];

        for (struct write *write = view == NULL ? NULL : view->writes, *next; write != NULL; write = next) {
                next = write->next;
                if (write->outcome == LATE && write->answered) {
                        if (chance_of(world.chance, 50))
                                (void) apply(write);
                        take_off(view, write);
                } else if (write->outcome != ANSWER_ONLY) {
                        answer_write(view, write);
                        next = view->writes; /* an answer may have made others */
                }
        }
}

bool views_are_quiet(void)
{
        for (int r = 0; r < STAND_INS_REPLICAS; r++)
                if (views[r] != NULL && (views[r]->first != NULL || views[r]->writes != NULL))
                        return false;
        return true;
}

int store_open(sd_event *loop, const struct store_options *options, struct store **ret, struct err *err)
{
        struct store *view = calloc(1, sizeof(*view));

        (void) loop;
        (void) err;
        if (view == NULL)
                abort();
        view->options = *options;
        view->replica = stand_ins_opening;
        view->last = &view->first;
        views[view->replica] = view;
        memset(world.told[view->replica], 0, sizeof(world.told[view->replica]));
        memset(world.answered[view->replica], 0, sizeof(world.answered[view->replica]));
        list_all(view, false);
        *ret = view;
        return 0;
}

/* The process is killed: what it had sent may have come through. */
void store_close(struct store *view)
{
        if (view == NULL)
                return;
        while (view->writes != NULL) {
                struct write *write = view->writes;

                if (write->outcome != ANSWER_ONLY && (!write->answered || write->outcome == LATE) &&
                    chance_of(world.chance, 50))
                        (void) apply(write);
                if (!write->answered && write->answer != NULL)
                        write->answer(write->userdata, -ECANCELED, "the store is closed");
                take_off(view, write);
        }
        drop_events(view);
        views[view->replica] = NULL;
        memset(world.told[view->replica], 0, sizeof(world.told[view->replica]));
        memset(world.answered[view->replica], 0, sizeof(world.answered[view->replica]));
        free(view);
}

static int find_pod(const char *namespace_, const char *name)
{
        for (int i = 0; i < WORLD_PODS; i++)
                if (strcmp(world.pods[i].name, name) == 0 &&
                    strcmp(world.pods[i].namespace_, namespace_) == 0)
                        return i;
        abort();
}

/* Is it dead already when it would send this? */
static bool is_stopped(const struct store *view)
{
        bool stopped = world.doomed == view->replica && world.doomed_after == 0;

        if (world.doomed != view->replica)
                return false;
        world.doomed_after -= !stopped;
        world.struck = world.doomed_after == 0;
        return stopped;
}

static struct write *write_of_pod(struct store *view, const char *namespace_, const char *name,
                                  const char *uid, store_answer answer, void *userdata)
{
        enum outcome outcome = DONE;
        struct write *write;

        if (world.faults && chance_of(world.chance, 25))
                outcome = (enum outcome)(1 + chance_below(world.chance, 3));
        if (view->options.may_commit != NULL && !view->options.may_commit(view->options.userdata))
                outcome = ANSWER_ONLY;
        else if (is_stopped(view))
                outcome = ANSWER_ONLY;
        write = add_write(view, outcome, answer, userdata);
        write->result = -EPERM;
        write->pod = find_pod(namespace_, name);
        write->uid = (unsigned) strtoul(uid + 1, NULL, 10);
        return write;
}

void store_bind(struct store *view, const struct store_binding *binding, store_answer answer, void *userdata)
{
        struct write *write =
                write_of_pod(view, binding->namespace_, binding->name, binding->uid, answer, userdata);

        write->annotations = json_deep_copy(binding->annotations);
        while (write->node < WORLD_NODES && strcmp(world_node_name(write->node), binding->node) != 0)
                write->node++;
}

void store_evict(struct store *view, const char *namespace_, const char *name, const char *uid,
                 unsigned grace_sec, store_answer answer, void *userdata)
{
        (void) grace_sec;
        write_of_pod(view, namespace_, name, uid, answer, userdata)->evicts = true;
}

void store_try_evict(struct store *view, const char *namespace_, const char *name, const char *uid,
                     store_answer answer, void *userdata)
{
        (void) namespace_;
        (void) name;
        (void) uid;
        if (answer != NULL)
                (void) add_write(view, ANSWER_ONLY, answer, userdata);
}

static void succeed(struct store *view, store_answer answer, void *userdata)
{
        if (answer != NULL)
                (void) add_write(view, ANSWER_ONLY, answer, userdata);
}

/* There are no budgets. */
void budgets_judge(struct store *view, const char *namespace_, const char *const *names, size_t count,
                   budgets_refuse refuse, store_answer answer, void *userdata)
{
        (void) namespace_;
        (void) names;
        (void) count;
        (void) refuse;
        succeed(view, answer, userdata);
}

void store_patch(struct store *view, enum store_kind kind, const char *namespace_, const char *name,
                 const json_t *patch, store_answer answer, void *userdata)
{
        (void) kind;
        (void) namespace_;
        (void) name;
        (void) patch;
        succeed(view, answer, userdata);
}

void store_refresh(struct store *view)
{
        view->refreshing = true;
        list_all(view, true);
}

bool store_is_rechecking(const struct store *view)
{
        return view->rechecking;
}

bool store_is_fresh(const struct store *view)
{
        return view->fresh;
}

bool store_serves(const struct store *view, enum store_kind kind, const char *namespace_)
{
        (void) view;
        (void) namespace_;
        (void) kind;
        return true;
}

uint64_t store_age_usec(const struct store *view, unsigned kinds, uint64_t now_usec)
{
        (void) view;
        (void) kinds;
        (void) now_usec;
        return 0;
}

uint64_t store_inventory_mtime_usec(const struct store *view, const char *node)
{
        (void) view;
        (void) node;
        return 0;
}

void store_event(struct store *view, const struct store_event *event)
{
        (void) view;
        if (strcmp(event->reason, "LedgerDrift") == 0)
                world_break("the ledger drifted", "%s/%s: %s", event->namespace_, event->name,
                            event->message);
}

const char *store_kind_name(enum store_kind kind)
{
        return kind == STORE_POD ? "Pod" : kind == STORE_INVENTORY ? "NodeAccelerators" : "Node";
}
