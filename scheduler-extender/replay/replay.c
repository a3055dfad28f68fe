/* Replays arrivals and departures of a trace over nodes, with the verdict of each kind of pod kept per node.
 */
#include "scheduler-extender/replay/replay.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/random.h"

/* clang-format off */
static const char *const policy_names[] = {
        [REPLAY_PACKED]       = "packed",
        [REPLAY_UNIFORM]      = "uniform",
        [REPLAY_LARGEST_FREE] = "largest-free",
        [REPLAY_FASTEST]      = "fastest",
        [REPLAY_BESTFIT]      = "bestfit",
        [REPLAY_FGD]          = "fgd",
};
/* clang-format on */
static_assert(ARRAY_SIZE(policy_names) == REPLAY_POLICY_COUNT, "a policy without a name");

int replay_policy_parse(const char *name, enum replay_policy *ret)
{
        for (size_t i = 0; i < ARRAY_SIZE(policy_names); i++)
                if (strcmp(policy_names[i], name) == 0) {
                        *ret = (enum replay_policy) i;
                        return 0;
                }
        return -EINVAL;
}

struct state_node {
        struct fragmentation_node free;
        uint16_t chip_left[REPLAY_CHIPS_MAX]; /* the same, with the chips' own indices */
        double fragmentation;
        uint32_t version; /* 0 = untouched since the start */
        uint32_t twin;    /* the first node that began just like this one */
};

/* What a kind of pod would mean to a node; good while the node's version is the same. */
struct verdict {
        uint32_t version; /* + 1; 0 = never worked out */
        bool fits;
        int8_t partial;
        int64_t key[2]; /* smaller is better */
};

/* A pod that has not left yet, in a heap by the time it leaves. */
struct guest {
        double leaves;
        uint32_t pod;
        int32_t node;
        uint8_t chips, chip[REPLAY_CHIPS_MAX];
};

struct replay {
        const struct replay_node *nodes;
        const struct replay_pod *pods;
        size_t node_count, pod_count, kind_count;
        const struct replay_options *options;
        struct fragmentation_typical typical;
        struct state_node *state;
        struct fragmentation_pod *kinds;
        uint32_t *kind_of; /* by pod */
        struct verdict *verdicts;
        int32_t *shortlist;
        struct guest *guests;
        size_t guest_count;
        double now, held_time, busy_milli; /* departures */
        uint64_t capacity_milli;
};

static uint32_t milli_of(const struct fragmentation_pod *pod)
{
        return pod->chips * pod->milli;
}

static void key_of(const struct replay *r, const struct state_node *node, const struct replay_node *whole,
                   const struct fragmentation_pod *pod, struct verdict *v)
{
        uint32_t left = fragmentation_left(&node->free), total = whole->chips * CHIP_MILLI;
        int partial = -1;

        switch (r->options->policy) {
        case REPLAY_UNIFORM:
                v->key[0] = (int64_t) total - left;
                break;
        case REPLAY_LARGEST_FREE:
                v->key[0] = -(int64_t) left;
                break;
        case REPLAY_FASTEST:
                v->key[0] = -(int64_t) (whole->speed * 1000);
                break;
        case REPLAY_BESTFIT:
                v->key[0] = (int64_t) (left - milli_of(pod)) * 16 / 1000 +
                            (int64_t) (node->free.cpu_milli - pod->cpu_milli) / 1000;
                break;
        default:
                v->key[0] =
                        fragmentation_choose(&r->typical, &node->free, node->fragmentation, pod, &partial);
        }
        v->key[1] = left - milli_of(pod);
        v->partial = (int8_t) partial;
}

/* Policies that do not choose a chip take the tightest shared one. */
static int tightest_partial(const struct fragmentation_node *node, const struct fragmentation_pod *pod)
{
        int best = -1;

        for (uint32_t i = 0; pod->chips == 1 && pod->milli < CHIP_MILLI && i < node->partial_count; i++)
                if (node->partial[i] >= pod->milli && (best < 0 || node->partial[i] < node->partial[best]))
                        best = (int) i;
        return best;
}

static const struct verdict *judge(struct replay *r, uint32_t kind, size_t at)
{
        struct state_node *node = &r->state[at];
        struct verdict *v = &r->verdicts[kind * r->node_count + at];
        const struct fragmentation_pod *pod = &r->kinds[kind];

        if (v->version == node->version + 1)
                return v;
        v->version = node->version + 1;
        v->fits = fragmentation_fits(&node->free, pod);
        if (!v->fits)
                return v;
        key_of(r, node, &r->nodes[at], pod, v);
        if (r->options->policy != REPLAY_PACKED && r->options->policy != REPLAY_FGD)
                v->partial = (int8_t) tightest_partial(&node->free, pod);
        return v;
}

static bool is_better(const struct verdict *a, const struct verdict *b)
{
        return a->key[0] != b->key[0] ? a->key[0] < b->key[0] : a->key[1] < b->key[1];
}

/* As LeastAllocated of kube-scheduler scores a node once the pod is there: per cent of CPU and memory left.
 */
static uint64_t percent_left(const struct replay *r, uint32_t kind, int32_t at)
{
        const struct fragmentation_pod *pod = &r->kinds[kind];
        const struct fragmentation_node *free_ = &r->state[at].free;
        const struct replay_node *whole = &r->nodes[at];
        uint64_t cpu = whole->cpu_milli == 0
                               ? 0
                               : (uint64_t) (free_->cpu_milli - pod->cpu_milli) * 100 / whole->cpu_milli;
        uint64_t memory = whole->memory_mib == 0 ? 0
                                                 : (uint64_t) (free_->memory_mib - pod->memory_mib) * 100 /
                                                           whole->memory_mib;

        return (cpu + memory) / 2;
}

static size_t shortlist_length(const struct replay *r)
{
        size_t length = r->options->shortlist < r->node_count ? r->options->shortlist : r->node_count;

        return length > 0 ? length : 1;
}

/* Of the shortlist the one that kube-scheduler takes; -1: nobody is on it. Of nodes that began alike and are
 * untouched only the first, their twin, is looked at where one node is wanted. */
static int32_t best_node(struct replay *r, uint32_t kind)
{
        const size_t limit = shortlist_length(r);
        const struct verdict *verdicts = &r->verdicts[kind * r->node_count];
        int32_t *list = r->shortlist, found = -1;
        size_t count = 0;

        for (size_t i = 0; i < r->node_count; i++) {
                const struct verdict *v;
                size_t at = count;

                if (limit == 1 && r->state[i].version == 0 && r->state[i].twin != i)
                        continue;
                v = judge(r, kind, i);
                while (v->fits && at > 0 && is_better(v, &verdicts[list[at - 1]]))
                        at--;
                if (!v->fits || at == limit)
                        continue;
                count += count < limit;
                memmove(&list[at + 1], &list[at], (count - at - 1) * sizeof(*list));
                list[at] = (int32_t) i;
        }
        for (size_t i = 0; i < count; i++)
                if (found < 0 || percent_left(r, kind, list[i]) > percent_left(r, kind, found))
                        found = list[i];
        return found;
}

static void touch(struct replay *r, struct state_node *node)
{
        if (node->version == 0) /* nodes that began alike need another twin that is still untouched */
                for (size_t i = 0, next = r->node_count; i < r->node_count; i++)
                        if (r->state[i].version == 0 && &r->state[i] != node &&
                            r->state[i].twin == (uint32_t) (node - r->state)) {
                                next = next == r->node_count ? i : next;
                                r->state[i].twin = (uint32_t) next;
                        }
        node->version++;
        if (r->options->policy == REPLAY_PACKED || r->options->policy == REPLAY_FGD)
                node->fragmentation = fragmentation_of(&r->typical, &node->free);
}

/* Which of the node's chips the placement uses, by index. */
static void name_chips(struct state_node *node, const struct fragmentation_pod *pod, int partial,
                       struct replay_placement *p)
{
        uint32_t wanted = partial >= 0 ? node->free.partial[partial] : CHIP_MILLI;

        for (uint8_t i = 0; i < REPLAY_CHIPS_MAX && p->chips < pod->chips; i++)
                if (node->chip_left[i] == wanted) {
                        p->chip[p->chips++] = i;
                        node->chip_left[i] = (uint16_t) (wanted - pod->milli);
                }
}

static void place(struct replay *r, uint32_t kind, int32_t at, struct replay_placement *p)
{
        struct state_node *node = &r->state[at];
        int8_t partial = judge(r, kind, (size_t) at)->partial;

        p->node = at;
        name_chips(node, &r->kinds[kind], partial, p);
        fragmentation_take(&node->free, &r->kinds[kind], partial);
        touch(r, node);
}

/* Packed again from the chips' own state. */
static void count_free(struct state_node *node)
{
        node->free.whole = node->free.partial_count = 0;
        for (size_t i = 0; i < REPLAY_CHIPS_MAX; i++)
                if (node->chip_left[i] == CHIP_MILLI)
                        node->free.whole++;
                else if (node->chip_left[i] > 0)
                        node->free.partial[node->free.partial_count++] = node->chip_left[i];
}

static void leave(struct replay *r, const struct guest *g)
{
        const struct fragmentation_pod *pod = &r->pods[g->pod].request;
        struct state_node *node = &r->state[g->node];

        node->free.cpu_milli += pod->cpu_milli;
        node->free.memory_mib += pod->memory_mib;
        for (uint8_t i = 0; i < g->chips; i++)
                node->chip_left[g->chip[i]] = (uint16_t) (node->chip_left[g->chip[i]] + pod->milli);
        count_free(node);
        touch(r, node);
        r->busy_milli -= milli_of(pod);
}

static void sift(struct guest *heap, size_t count, size_t at)
{
        for (size_t child; (child = 2 * at + 1) < count; at = child) {
                struct guest swap;

                if (child + 1 < count && heap[child + 1].leaves < heap[child].leaves)
                        child++;
                if (heap[at].leaves <= heap[child].leaves)
                        return;
                swap = heap[at];
                heap[at] = heap[child];
                heap[child] = swap;
        }
}

static void remember_guest(struct replay *r, const struct replay_placement *p, double leaves)
{
        size_t at = r->guest_count++;
        struct guest guest = { .leaves = leaves, .pod = p->pod, .node = p->node, .chips = p->chips };

        memcpy(guest.chip, p->chip, sizeof(guest.chip));
        for (; at > 0 && r->guests[(at - 1) / 2].leaves > leaves; at = (at - 1) / 2)
                r->guests[at] = r->guests[(at - 1) / 2];
        r->guests[at] = guest;
        r->busy_milli += milli_of(&r->pods[p->pod].request);
}

static void advance(struct replay *r, double to)
{
        while (r->guest_count > 0 && r->guests[0].leaves <= to) {
                struct guest gone = r->guests[0];

                r->held_time += r->busy_milli * (gone.leaves - r->now);
                r->now = gone.leaves;
                r->guests[0] = r->guests[--r->guest_count];
                sift(r->guests, r->guest_count, 0);
                leave(r, &gone);
        }
        r->held_time += r->busy_milli * (to - r->now);
        r->now = to;
}

static double duration_of(const struct replay_pod *pod)
{
        return pod->deleted_sec > pod->created_sec ? (double) (pod->deleted_sec - pod->created_sec) : 1;
}

/* Time between arrivals for which the chips held come to load x capacity, if all found room. */
static double arrival_interval(const struct replay *r)
{
        double chip_time = 0;

        for (size_t i = 0; i < r->pod_count; i++)
                chip_time += milli_of(&r->pods[i].request) * duration_of(&r->pods[i]);
        return chip_time / (double) r->pod_count / (r->options->load * (double) r->capacity_milli);
}

static void arrive(struct replay *r, uint32_t pod, struct replay_placement *p)
{
        uint32_t kind = r->kind_of[pod];
        int32_t at = best_node(r, kind);

        *p = (struct replay_placement){ .pod = pod, .node = -1 };
        if (at >= 0)
                place(r, kind, at, p);
}

static int run(struct replay *r, struct replay_result *ret)
{
        CLEANUP(free_p) uint32_t *order = malloc(r->pod_count * sizeof(*order));
        bool departures = r->options->departures;
        double interval = departures ? arrival_interval(r) : 0;
        uint64_t random = r->options->seed, requested = 0, allocated = 0;
        uint64_t limit = (uint64_t) (r->options->load * (double) r->capacity_milli);
        size_t at = r->pod_count;

        assert(r->pod_count > 0); /* check() */
        if (order == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < r->pod_count; i++)
                order[i] = (uint32_t) i;
        while (departures ? ret->arrived < r->pod_count : requested < limit) {
                struct replay_placement p;

                if (at == r->pod_count) {
                        random_shuffle(&random, order, r->pod_count);
                        at = 0;
                }
                if (departures)
                        advance(r, (double) ret->arrived * interval);
                arrive(r, order[at++], &p);
                ret->arrived++;
                requested += milli_of(&r->pods[p.pod].request);
                if (p.node >= 0) {
                        ret->placed++;
                        allocated += milli_of(&r->pods[p.pod].request);
                        if (departures)
                                remember_guest(r, &p, r->now + duration_of(&r->pods[p.pod]));
                }
                if (r->options->placed != NULL)
                        r->options->placed(r->options->userdata, &p);
        }
        ret->chips_requested = (double) requested / CHIP_MILLI;
        ret->chips_allocated = departures && r->now > 0 ? r->held_time / r->now / CHIP_MILLI
                                                        : (double) allocated / CHIP_MILLI;
        ret->allocation_percent = 100 * ret->chips_allocated * CHIP_MILLI / (double) r->capacity_milli;
        return 0;
}

static int find_kinds(struct replay *r)
{
        CLEANUP(free_p) uint32_t *slots = NULL;
        size_t slot_count = 64;

        while (slot_count < 2 * r->pod_count)
                slot_count *= 2;
        slots = calloc(slot_count, sizeof(*slots));
        r->kinds = malloc((r->pod_count + 1) * sizeof(*r->kinds));
        r->kind_of = malloc((r->pod_count + 1) * sizeof(*r->kind_of));
        if (slots == NULL || r->kinds == NULL || r->kind_of == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < r->pod_count; i++) {
                const struct fragmentation_pod *request = &r->pods[i].request;
                size_t at = (size_t) hash_bytes(request, sizeof(*request), 0) & (slot_count - 1);

                while (slots[at] != 0 && memcmp(&r->kinds[slots[at] - 1], request, sizeof(*request)) != 0)
                        at = (at + 1) & (slot_count - 1);
                if (slots[at] == 0) {
                        r->kinds[r->kind_count++] = *request;
                        slots[at] = (uint32_t) r->kind_count;
                }
                r->kind_of[i] = slots[at] - 1;
        }
        return 0;
}

static bool alike(const struct replay_node *a, const struct replay_node *b)
{
        return a->cpu_milli == b->cpu_milli && a->memory_mib == b->memory_mib && a->chips == b->chips &&
               a->model == b->model && a->speed == b->speed;
}

static void begin_nodes(struct replay *r)
{
        for (size_t i = 0; i < r->node_count; i++) {
                const struct replay_node *n = &r->nodes[i];
                struct state_node *s = &r->state[i];

                s->free = (struct fragmentation_node){ .cpu_milli = n->cpu_milli,
                                                       .memory_mib = n->memory_mib,
                                                       .whole = n->chips,
                                                       .model = n->model };
                for (uint32_t c = 0; c < n->chips; c++)
                        s->chip_left[c] = CHIP_MILLI;
                s->fragmentation = fragmentation_of(&r->typical, &s->free);
                while (s->twin < i && !alike(n, &r->nodes[s->twin]))
                        s->twin++;
                r->capacity_milli += (uint64_t) n->chips * CHIP_MILLI;
        }
}

static int prepare(struct replay *r)
{
        CLEANUP(free_p) struct fragmentation_pod *requests = malloc((r->pod_count + 1) * sizeof(*requests));
        int result;

        if (requests == NULL)
                return -ENOMEM;
        for (size_t i = 0; i < r->pod_count; i++)
                requests[i] = r->pods[i].request;
        result = fragmentation_learn(requests, r->pod_count, 1, &r->typical);
        if (result < 0)
                return result;
        if (r->options->policy == REPLAY_FGD)
                for (size_t i = 0; i < TYPICAL_SEQUENCES; i++) {
                        free(r->typical.sequences[i]);
                        r->typical.sequences[i] = NULL;
                }
        result = find_kinds(r);
        if (result < 0)
                return result;
        r->state = calloc(r->node_count, sizeof(*r->state));
        r->verdicts = calloc(r->kind_count * r->node_count, sizeof(*r->verdicts));
        r->shortlist = calloc(shortlist_length(r), sizeof(*r->shortlist));
        r->guests = r->options->departures ? calloc(r->pod_count + 1, sizeof(*r->guests)) : NULL;
        if (r->state == NULL || r->verdicts == NULL || r->shortlist == NULL ||
            (r->options->departures && r->guests == NULL))
                return -ENOMEM;
        begin_nodes(r);
        return 0;
}

static int check(const struct replay_node *nodes, size_t node_count, const struct replay_pod *pods,
                 size_t pod_count, const struct replay_options *options, struct err *err)
{
        uint64_t chips = 0, asked = 0;

        for (size_t i = 0; i < node_count; i++) {
                if (nodes[i].chips > REPLAY_CHIPS_MAX)
                        return err_set(err, -EINVAL, "node %zu has %u chips; at most %d are simulated", i,
                                       nodes[i].chips, REPLAY_CHIPS_MAX);
                chips += nodes[i].chips;
        }
        for (size_t i = 0; i < pod_count; i++)
                asked += pods[i].request.chips;
        if (chips == 0)
                return err_set(err, -EINVAL, "the nodes have no chips");
        if (asked == 0)
                return err_set(err, -EINVAL, "no pod asks for chips, so their load would never be reached");
        if (!(options->load > 0) || options->load > 1000)
                return err_set(err, -EINVAL, "the load must be above 0 and at most 1000");
        return 0;
}

int replay_run(const struct replay_node *nodes, size_t node_count, const struct replay_pod *pods,
               size_t pod_count, const struct replay_options *options, struct replay_result *ret,
               struct err *err)
{
        struct replay r = { .nodes = nodes,
                            .node_count = node_count,
                            .pods = pods,
                            .pod_count = pod_count,
                            .options = options };
        int result = check(nodes, node_count, pods, pod_count, options, err);

        *ret = (struct replay_result){ 0 };
        if (result < 0)
                return result;
        result = prepare(&r);
        if (result == 0)
                result = run(&r, ret);
        fragmentation_forget(&r.typical);
        free(r.state);
        free(r.kinds);
        free(r.kind_of);
        free(r.verdicts);
        free(r.guests);
        free(r.shortlist);
        return result < 0
                       ? err_set(err, result, "no memory for %zu nodes and %zu pods", node_count, pod_count)
                       : 0;
}
