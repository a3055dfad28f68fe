/* One step after the other, and after each a look at both ledgers. */
#include "tests/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scheduler-extender/extender.h"
#include "scheduler-extender/extender_internal.h"
#include "scheduler-extender/ledger/ledger_nodes.h"
#include "tests/model/tenants.h"
#include "tests/model/views.h"

#define QUIET_EVERY     250
#define QUIET_FAILOVERS 20
#define SERVICE_STEPS   100
#define MODEL_NAMES_MAX 400 /* of vendors' resources, of what is there, and of what was a short while ago */

static struct extender *extenders[STAND_INS_REPLICAS];
static struct extender_options options;

/* What a filter said last, and may be bound on later. */
static struct {
        unsigned uid;
        int node;
} chosen[WORLD_PODS];

static void start(int replica)
{
        struct err err = { 0 };

        stand_ins_opening = replica;
        if (extender_new(NULL, &options, &extenders[replica], &err) < 0) {
                (void) fprintf(stderr, "model: %s\n", err.msg);
                abort();
        }
}

static void kill_one(int replica)
{
        world_trace("kill r%d", replica);
        if (stand_ins_leader == replica)
                stand_ins_leader = -1;
        extender_free(extenders[replica]);
        extenders[replica] = NULL;
}

static void change_leader(int to)
{
        world_trace("leader %d, then %d", stand_ins_leader, to);
        if (stand_ins_leader >= 0)
                view_settle_late(stand_ins_leader); /* what it had begun ends before another begins */
        stand_ins_lead(to);
}

static uint64_t held_by(int replica, int node)
{
        const struct ledger *ledger = cluster_ledger(extenders[replica]->cluster);
        const char *name = world_node_name(node);
        const struct ledger_node *n = ledger_nodes_find(ledger, name, strlen(name));
        uint64_t held = 0;

        for (uint32_t g = 0; n != NULL && g < n->group_count; g++)
                held += n->groups[g].held;
        return n == NULL || n->group_count == 0 ? UINT64_MAX : held;
}

static unsigned must_hold(int replica, int node)
{
        unsigned chips = 0;

        for (int i = 0; i < WORLD_PODS; i++) {
                const struct world_word *told = &world.told[replica][i],
                                        *answered = &world.answered[replica][i];

                if (told->uid != 0 && !told->over && told->node == node)
                        chips += told->chips;
                else if (answered->uid != 0 && answered->node == node)
                        chips += answered->chips;
        }
        return chips;
}

/* Names come and go all the time: none that is used may have been given back, or be another's. */
static void look_at_names(int replica, int node)
{
        const struct ledger *ledger = cluster_ledger(extenders[replica]->cluster);
        const char *name = world_node_name(node), *is;
        const struct ledger_node *n = ledger_nodes_find(ledger, name, strlen(name));
        char group[WORLD_NAME_BYTES], model[WORLD_NAME_BYTES];

        if (n == NULL || !n->has_inventory)
                return;
        world_group_names(world.told_names[replica][node], group, model);
        is = symbols_name(&ledger->symbols, n->groups[1].name);
        if (strncmp(is, group, strlen(group)) != 0)
                world_break("a name was lost", "replica %d calls a group of %s '%s', not '%s1'", replica,
                            name, is, group);
        is = symbols_name(&ledger->symbols, n->groups[1].model);
        if (strcmp(is, model) != 0)
                world_break("a name was lost", "replica %d calls a model of %s '%s', not '%s'", replica, name,
                            is, model);
        if (ledger->symbols.count > MODEL_NAMES_MAX)
                world_break("names are not given back", "replica %d has %u", replica, ledger->symbols.count);
}

static void look(void)
{
        for (int r = 0; r < STAND_INS_REPLICAS; r++)
                for (int n = 0; n < WORLD_NODES && extenders[r] != NULL; n++)
                        look_at_names(r, n);
        for (int r = 0; r < STAND_INS_REPLICAS; r++)
                for (int n = 0; n < WORLD_NODES && extenders[r] != NULL; n++)
                        if (held_by(r, n) < must_hold(r, n))
                                world_break("an account shrank without proof",
                                            "replica %d holds %llu on %s, was told of %u", r,
                                            (unsigned long long) held_by(r, n), world_node_name(n),
                                            must_hold(r, n));
}

static char *filter_body(const struct world_pod *pod)
{
        json_t *names = json_array(), *body;
        char *text;

        for (int n = 0; n < WORLD_NODES; n++)
                (void) json_array_append_new(names, json_string(world_node_name(n)));
        body = json_pack("{s:o,s:n,s:o}", "Pod", world_pod_json(pod), "Nodes", "NodeNames", names);
        text = json_dumps(body, JSON_COMPACT);
        json_decref(body);
        return text;
}

/* Return: a node that passes, or -1. */
static int filter(int replica, int index)
{
        struct stand_ins_call call = { .reply = NULL };
        char *body = filter_body(&world.pods[index]);
        json_t *reply, *names;
        int node = -1;

        (void) stand_ins_call(replica, "/scheduler/filter", body, &call);
        free(body);
        reply = json_loads(call.reply == NULL ? "" : call.reply, 0, NULL);
        names = json_object_get(reply, "NodeNames");
        if (call.status == 200 && json_array_size(names) > 0) {
                const char *name = json_string_value(
                        json_array_get(names, chance_below(world.chance, json_array_size(names))));

                for (node = 0; strcmp(world_node_name(node), name) != 0;)
                        node++;
        }
        json_decref(reply);
        free(call.reply);
        return node;
}

static void bind_pod(int replica, int index, int node)
{
        struct stand_ins_call *call = calloc(1, sizeof(*call));
        char body[256];

        (void) snprintf(body, sizeof(body),
                        "{\"PodName\":\"%s\",\"PodNamespace\":\"%s\",\"PodUID\":\"u%u\",\"Node\":\"%s\"}",
                        world.pods[index].name, world.pods[index].namespace_, chosen[index].uid,
                        world_node_name(node));
        if (call == NULL)
                abort();
        if (stand_ins_call(replica, "/scheduler/bind", body, call))
                return; /* freed when it is answered */
        free(call->reply);
        free(call);
}

static int any_replica(void)
{
        int replica = (int) chance_below(world.chance, STAND_INS_REPLICAS);

        if (chance_of(world.chance, 90) && stand_ins_leader >= 0)
                replica = stand_ins_leader;
        return extenders[replica] != NULL ? replica : -1;
}

static void step_schedule(void)
{
        int index = (int) chance_below(world.chance, WORLD_PODS), replica = any_replica(), node, tries = 0;

        while (++tries < WORLD_PODS && (!world.pods[index].exists || world.pods[index].node >= 0))
                index = (index + 1) % WORLD_PODS;
        if (replica < 0 || tries == WORLD_PODS)
                return;
        node = filter(replica, index);
        chosen[index].uid = world.pods[index].uid;
        chosen[index].node = node;
        if (node >= 0 && chance_of(world.chance, 70))
                bind_pod(replica, index, node);
}

/* What a filter said a while ago. */
static void step_bind_late(void)
{
        int index = (int) chance_below(world.chance, WORLD_PODS), replica = any_replica();

        if (replica >= 0 && chosen[index].uid != 0 && chosen[index].node >= 0)
                bind_pod(replica, index, chosen[index].node);
}

/* Another scheduler, when nothing is under way that it could collide with. */
static void step_bind_by_others(void)
{
        int index = (int) chance_below(world.chance, WORLD_PODS),
            node = (int) chance_below(world.chance, WORLD_NODES);
        struct world_pod *pod = &world.pods[index];

        if (!pod->exists || pod->ended || pod->deleting || pod->node >= 0 || !views_are_quiet() ||
            world_held(node) + pod->chips > WORLD_CHIPS)
                return;
        for (int r = 0; r < STAND_INS_REPLICAS; r++)
                if (held_by(r, node) > world_held(node))
                        return; /* a bind that is being settled may yet come through */
        pod->node = node;
        views_tell_pod(index);
        for (int r = 0; r < STAND_INS_REPLICAS; r++)
                while (view_deliver(r)) {
                }
}

static void step_deliver(void)
{
        int replica = (int) chance_below(world.chance, STAND_INS_REPLICAS);

        for (size_t n = 1 + chance_below(world.chance, 20); n > 0 && view_deliver(replica); n--) {
        }
}

static void step_answer(void)
{
        (void) view_answer((int) chance_below(world.chance, STAND_INS_REPLICAS));
}

static void step_time(void)
{
        static const uint64_t steps_msec[] = { 1, 10, 100, 500, 1000, 1000, 5000, 65000 };

        stand_ins_monotonic_usec += WORLD_PICK(steps_msec) * 1000;
        stand_ins_realtime_usec += 1000000;
        if (chance_of(world.chance, 3)) /* somebody sets the clock: up to ten years, either way */
                stand_ins_realtime_usec = UINT64_C(1795000000000000) +
                                          (chance_below(world.chance, 21) * UINT64_C(31536000000000)) -
                                          UINT64_C(315360000000000);
}

static void make_trouble(void)
{
        int replica = (int) chance_below(world.chance, STAND_INS_REPLICAS);
        int node = (int) chance_below(world.chance, WORLD_NODES);

        switch (chance_below(world.chance, 6)) {
        case 0:
                kill_one(replica);
                start(replica);
                break;
        case 1:
                change_leader(chance_of(world.chance, 20) ? -1 : replica);
                break;
        case 2:
                world.usable[node] = WORLD_CHIPS - (unsigned) chance_below(world.chance, 3);
                world.names[node] = chance_of(world.chance, 30) ? 0 : ++world.renames;
                views_tell_node(node);
                break;
        default:
                view_list_anew(replica);
                break;
        }
}

static void step_trouble(void)
{
        if (stand_ins_leader < 0 && chance_of(world.chance, 50))
                change_leader((int) chance_below(world.chance, STAND_INS_REPLICAS));
        if (chance_of(world.chance, 30))
                make_trouble();
}

static void settle(void)
{
        world.faults = false;
        if (stand_ins_leader < 0)
                change_leader(0);
        for (int round = 0; round < 60; round++) {
                for (int r = 0; r < STAND_INS_REPLICAS; r++) {
                        while (view_answer(r)) {
                        }
                        while (view_deliver(r)) {
                        }
                }
                stand_ins_monotonic_usec += 2000000;
                stand_ins_realtime_usec += 2000000;
                stand_ins_run();
                look();
        }
        world.faults = true;
}

static void compare(void)
{
        for (int r = 0; r < STAND_INS_REPLICAS; r++)
                for (int n = 0; n < WORLD_NODES; n++)
                        if (held_by(r, n) != world_held(n))
                                world_break("ledger and truth differ",
                                            "replica %d holds %llu on %s, the truth is %u", r,
                                            (unsigned long long) held_by(r, n), world_node_name(n),
                                            world_held(n));
}

static bool is_borrowed(void)
{
        bool any = false;

        for (int i = 0; i < WORLD_PODS; i++) {
                const struct world_pod *pod = &world.pods[i];

                if (!pod->exists || pod->ended || pod->node != WORLD_NODES - 1)
                        continue;
                if (pod->right || pod->deleting || strcmp(pod->namespace_, "ops") == 0)
                        return false;
                any = true;
        }
        return any && world.usable[WORLD_NODES - 1] == WORLD_CHIPS;
}

/* A gang of emergencies of all the reserve's chips, while nobody but borrowers sits there, whatever their
 * labels say. */
static void take_back(void)
{
        int index = 2, other_index = 5; /* of namespace ops */

        tenants_remove(index);
        tenants_remove(other_index);
        if (!is_borrowed())
                return;
        for (int i = 0; i < WORLD_PODS; i++) { /* other emergencies would have the chips first */
                struct world_pod *other = &world.pods[i];

                if (other->exists && other->node < 0)
                        tenants_remove(i);
        }
        tenants_make_urgent(index);
        tenants_make_urgent(other_index);
        for (int round = 0; round < 4; round++) {
                settle();
                for (int i = 0; i < WORLD_PODS; i++)
                        if (world.pods[i].exists && world.pods[i].deleting)
                                tenants_remove(i); /* its kubelet ends it */
        }
        settle();
        if (filter(stand_ins_leader, index) < 0 || filter(stand_ins_leader, other_index) < 0)
                world_break("borrowers were not evicted", "%u chips are held on the reserve",
                            world_held(WORLD_NODES - 1));
}

static void step(void)
{
        static void (*const steps[])(void) = { tenants_step_make,
                                               tenants_step_make,
                                               tenants_step_make,
                                               step_schedule,
                                               step_schedule,
                                               step_schedule,
                                               tenants_step_life,
                                               tenants_step_life,
                                               tenants_step_scribble,
                                               tenants_step_scribble,
                                               step_deliver,
                                               step_deliver,
                                               step_deliver,
                                               step_deliver,
                                               step_answer,
                                               step_answer,
                                               step_answer,
                                               step_time,
                                               step_time,
                                               step_trouble,
                                               step_bind_late,
                                               step_bind_by_others };

        steps[chance_below(world.chance, sizeof(steps) / sizeof(steps[0]))]();
        stand_ins_run();
        look();
}

/* Nothing was lost on the way: what passes now is bound. */
static void bind_all(void)
{
        world.faults = false;
        for (int i = 0; i < WORLD_PODS; i++) {
                struct world_pod *pod = &world.pods[i];
                int node = !pod->exists || pod->node >= 0 || pod->ended || pod->deleting
                                   ? -1
                                   : filter(stand_ins_leader, i);

                if (node < 0)
                        continue;
                chosen[i].uid = pod->uid;
                bind_pod(stand_ins_leader, i, node);
                while (view_answer(stand_ins_leader)) {
                }
                if (pod->node != node)
                        world_break("a pod that fits was not bound", "%s/%s on %s", pod->namespace_,
                                    pod->name, world_node_name(node));
                for (int r = 0; r < STAND_INS_REPLICAS; r++)
                        while (view_deliver(r)) {
                        }
        }
        world.faults = true;
}

static void step_of_service(void)
{
        static void (*const steps[])(void) = {
                tenants_step_make, tenants_step_make, step_schedule,         step_schedule, step_schedule,
                step_schedule,     tenants_step_life, tenants_step_scribble, step_deliver,  step_deliver,
                step_deliver,      step_answer,       step_answer,           step_time,     step_bind_late
        };

        steps[chance_below(world.chance, sizeof(steps) / sizeof(steps[0]))]();
        stand_ins_run();
        look();
}

/* Return: was it killed at a write? */
static bool fail_over(void)
{
        int leader = stand_ins_leader;

        world.struck = false;
        world.doomed = leader;
        world.doomed_after = (unsigned) chance_below(world.chance, 4);
        for (int i = 0; i < SERVICE_STEPS && !world.struck && world.wrong == NULL; i++)
                step_of_service();
        kill_one(leader);
        world.doomed = -1;
        for (size_t n = chance_below(world.chance, 5); n > 0; n--)
                step_of_service(); /* nobody leads */
        change_leader(STAND_INS_REPLICAS - 1 - leader);
        start(leader);
        return world.struck;
}

static void begin(struct chance *chance)
{
        extender_options_default(&options);
        options.server.store = "kubernetes";
        options.server.emergency_namespaces = "ops";
        options.server.lend_reserve = true;
        options.server.stale_after_sec = 0;
        memset(chosen, 0, sizeof(chosen));
        world_reset(chance);
        world.faults = true;
        stand_ins_monotonic_usec = UINT64_C(1000000000);
        stand_ins_realtime_usec = UINT64_C(1795000000000000);
        stand_ins_leader = -1;
        for (int r = 0; r < STAND_INS_REPLICAS; r++)
                start(r);
}

static const char *end(void)
{
        for (int r = 0; r < STAND_INS_REPLICAS; r++)
                kill_one(r);
        return world.wrong;
}

const char *model_run(struct chance *chance, uint64_t steps)
{
        begin(chance);
        for (uint64_t s = 1; s <= steps && world.wrong == NULL && !chance->ended; s++) {
                step();
                if (s % QUIET_EVERY != 0)
                        continue;
                settle();
                compare();
                take_back();
        }
        return end();
}

const char *model_run_failovers(struct chance *chance, unsigned failovers)
{
        begin(chance);
        change_leader(0);
        for (unsigned done = 0; done < failovers && world.wrong == NULL;) {
                done += fail_over();
                if (done % QUIET_FAILOVERS != 0)
                        continue;
                settle();
                compare();
                bind_all();
        }
        return end();
}
