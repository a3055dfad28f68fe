/* What a pod loses, and what its gang loses with it. */
#include "scheduler-extender/emergency/victim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "job/spec/job_arguments.h"
#include "scheduler-extender/decide/backfill.h"
#include "scheduler-extender/ledger/ledger_chips.h"
#include "scheduler-extender/ledger/ledger_jobs.h"

#define CHIPS_SHIFT 36
#define WORK_SHIFT  54
#define TAKEN_SHIFT 96
#define WORK_MASK   ((UINT64_C(1) << (TAKEN_SHIFT - WORK_SHIFT)) - 1)
#define SECONDS_MAX ((UINT64_C(1) << 24) - 1) /* 194 days: of 262,144 chips the work stays in its bits */
#define GANG_MAX    ((victim_cost) 1 << 112)  /* sums of many stay below VICTIM_COST_MAX */

/* Its time not known: soon. */
static bool is_gone_soon(const struct victim_rules *rules, const struct ledger_pod *pod)
{
        uint64_t soon = rules->grace_usec > VICTIM_AGAIN_USEC ? rules->grace_usec : VICTIM_AGAIN_USEC;

        return pod->deleting && pod->deletion_usec <= rules->now_usec + soon &&
               !backfill_overdue(pod, rules->now_usec);
}

bool victim_leaves(const struct victim_rules *rules, const struct ledger_pod *pod)
{
        return is_gone_soon(rules, pod) || (pod->evicted_usec != 0 && rules->now_usec >= pod->evicted_usec &&
                                            rules->now_usec - pod->evicted_usec < VICTIM_AGAIN_USEC);
}

bool victim_spared(const struct ledger_pod *pod, uint64_t now_usec)
{
        return pod->spared_usec != 0 && now_usec >= pod->spared_usec &&
               now_usec - pod->spared_usec < VICTIM_AGAIN_USEC;
}

/* It was evicted, and is being deleted with more time than that gives. */
static bool keeps_its_time(const struct ledger_pod *pod)
{
        return pod->deleting && pod->evicted_usec != 0;
}

bool victim_may_go(const struct victim_rules *rules, const struct ledger *ledger,
                   const struct ledger_pod *pod, const struct ledger_job *job)
{
        return pod->node != NULL && (job == NULL || pod->job != job) && !victim_leaves(rules, pod) &&
               !keeps_its_time(pod) && !backfill_overdue(pod, rules->now_usec) &&
               !victim_spared(pod, rules->now_usec) && ledger_pods_gives_way(pod, rules->takes) &&
               ledger_chips_asked(ledger, &pod->request) > 0;
}

static uint64_t seconds_since(const struct victim_rules *rules, uint64_t usec)
{
        uint64_t seconds = rules->now_usec > usec ? (rules->now_usec - usec) / 1000000 : 0;

        return seconds < SECONDS_MAX ? seconds : SECONDS_MAX;
}

/* The reference trainer does; others may say so. */
static bool saves_at_end(const struct ledger_pod *pod)
{
        const struct job *job = pod->job == NULL ? NULL : pod->job->training;

        return pod->saves || (job != NULL && job->checkpoint.given && job->checkpoint.claim[0] != '\0' &&
                              job_arguments_taken(job));
}

/* Of the pod's time on its chips, what no checkpoint has, and what it would not lose anyway. */
static uint64_t unsaved_seconds(const struct victim_rules *rules, const struct ledger_pod *pod)
{
        uint64_t since = pod->started_usec > pod->created_usec ? pod->started_usec : pod->created_usec;

        if (pod->job != NULL && pod->job->saved_usec > since)
                since = pod->job->saved_usec;
        return saves_at_end(pod) || pod->deleting ? 0 : seconds_since(rules, since);
}

victim_cost victim_pod_cost(const struct victim_rules *rules, const struct ledger *ledger,
                            const struct ledger_pod *pod)
{
        uint64_t chips = ledger_chips_asked(ledger, &pod->request);
        victim_cost cost = (victim_cost) (chips * unsaved_seconds(rules, pod)) << WORK_SHIFT |
                           (victim_cost) chips << CHIPS_SHIFT;

        cost += seconds_since(rules, pod->created_usec);
        if (rules->takes == LEDGER_PODS_TAKES_PREEMPTIBLE && pod->node != NULL && !pod->node->reserved)
                cost += (victim_cost) chips << TAKEN_SHIFT;
        return cost;
}

uint64_t victim_chip_seconds(victim_cost cost)
{
        return (uint64_t) (cost >> WORK_SHIFT) & WORK_MASK;
}

bool victim_is_member(const struct ledger_pod *pod)
{
        return pod->job != NULL &&
               (pod->request.gang_size > 1 || pod->kind_count > 0 || pod->job->training != NULL);
}

void victim_gangs_free(struct victim_gangs *gangs)
{
        free(gangs->list);
        free(gangs->slots);
}

/* Its slot, or the free one where it belongs. There is always a free one. */
static uint32_t *slot_of(uint32_t *slots, size_t slot_count, const struct victim_gang *list,
                         const struct ledger_job *job)
{
        size_t i = (size_t) (((uintptr_t) job >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) % slot_count;

        while (slots[i] != 0 && list[slots[i] - 1].job != job)
                i = (i + 1) % slot_count;
        return &slots[i];
}

static bool grow(struct victim_gangs *gangs)
{
        size_t capacity = gangs->capacity == 0 ? 16 : 2 * gangs->capacity;
        struct victim_gang *list = realloc(gangs->list, capacity * sizeof(*list));
        uint32_t *slots = list == NULL ? NULL : calloc(2 * capacity, sizeof(*slots));

        if (list != NULL)
                gangs->list = list;
        if (slots == NULL)
                return false;
        for (size_t i = 0; i < gangs->count; i++)
                *slot_of(slots, 2 * capacity, list, list[i].job) = (uint32_t) i + 1;
        free(gangs->slots);
        gangs->slots = slots;
        gangs->slot_count = 2 * capacity;
        gangs->capacity = capacity;
        return true;
}

struct victim_gang *victim_gangs_of(struct victim_gangs *gangs, const struct victim_rules *rules,
                                    const struct ledger *ledger, const struct ledger_pod *pod)
{
        struct victim_gang *gang;
        uint32_t *slot;

        if (gangs->count == gangs->capacity && !grow(gangs))
                return NULL;
        slot = slot_of(gangs->slots, gangs->slot_count, gangs->list, pod->job);
        if (*slot != 0)
                return &gangs->list[*slot - 1];
        gang = &gangs->list[gangs->count++];
        *gang = (struct victim_gang){ .job = pod->job };
        *slot = (uint32_t) gangs->count;
        for (const struct ledger_pod *member = pod->job->pods; member != NULL; member = member->next_in_job) {
                if (member->node == NULL || member->ended)
                        continue;
                gang->cost += victim_pod_cost(rules, ledger, member);
                gang->cost = gang->cost < GANG_MAX ? gang->cost : GANG_MAX;
        }
        return gang;
}

int victim_list_add(struct victim_list *list, struct ledger_pod *pod)
{
        struct ledger_pod **added =
                array_add(&list->pods, &list->count, &list->capacity, sizeof(struct ledger_pod *));

        if (added == NULL)
                return -ENOMEM;
        *added = pod;
        return 0;
}

void victim_list_free(struct victim_list *list)
{
        free(list->pods);
        *list = (struct victim_list){ 0 };
}

int victim_list_cost(const struct victim_list *list, const struct victim_rules *rules,
                     const struct ledger *ledger, victim_cost *ret)
{
        struct victim_gangs gangs = { 0 };
        int r = 0;

        *ret = 0;
        for (size_t i = 0; i < list->count && r == 0; i++) {
                struct ledger_pod *pod = list->pods[i];
                size_t known = gangs.count;

                if (!victim_is_member(pod))
                        *ret += victim_pod_cost(rules, ledger, pod);
                else if (victim_gangs_of(&gangs, rules, ledger, pod) == NULL)
                        r = -ENOMEM;
                else if (gangs.count > known)
                        *ret += gangs.list[known].cost;
        }
        victim_gangs_free(&gangs);
        return r;
}

struct order {
        const struct victim_rules *rules;
        const struct ledger *ledger;
};

static int by_cost(const void *a, const void *b, void *userdata)
{
        const struct ledger_pod *x = *(struct ledger_pod *const *) a, *y = *(struct ledger_pod *const *) b;
        const struct order *order = userdata;
        victim_cost p = victim_pod_cost(order->rules, order->ledger, x),
                    q = victim_pod_cost(order->rules, order->ledger, y);

        return p != q ? (p < q ? -1 : 1) : strcmp(x->key, y->key);
}

void victim_list_sort(struct victim_list *list, const struct victim_rules *rules, const struct ledger *ledger)
{
        struct order order = { .rules = rules, .ledger = ledger };

        if (list->count > 0)
                qsort_r(list->pods, list->count, sizeof(list->pods[0]), by_cost, &order);
}
