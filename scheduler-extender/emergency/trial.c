/* A stack of changes of the ledger. */
#include "scheduler-extender/emergency/trial.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "scheduler-extender/ledger/ledger_jobs.h"

void trial_begin(struct trial *trial, struct ledger *ledger)
{
        *trial = (struct trial){ .ledger = ledger, .generation = ledger->generation };
}

static struct trial_step *push(struct trial *trial)
{
        return array_add(&trial->steps, &trial->count, &trial->capacity, sizeof(struct trial_step));
}

/* A plan's places know their slots. */
static void forget_slots(struct ledger *ledger, struct ledger_job *job)
{
        for (size_t i = 0; i < job->place_count; i++)
                job->places[i].slot = NULL;
        ledger_jobs_drop_lease(ledger, job);
}

/* Which of its places lease: not those of pods that are there, also when a trial has taken them off. */
static int set_plan_aside(struct ledger *ledger, struct ledger_job *job, struct gang_former *ret)
{
        ret->nodes = calloc(job->place_count, sizeof(*ret->nodes));
        if (ret->nodes == NULL)
                return -ENOMEM;
        for (ret->count = 0; ret->count < job->place_count; ret->count++)
                if (job->places[ret->count].slot != NULL)
                        ret->nodes[ret->count] = job->places[ret->count].slot->node;
        forget_slots(ledger, job);
        return 0;
}

static void put_plan_back(struct ledger *ledger, struct ledger_job *job, const struct gang_former *former)
{
        if (former->nodes == NULL)
                return; /* nothing was set aside */
        forget_slots(ledger, job);
        for (size_t i = 0; i < former->count; i++)
                if (former->nodes[i] != NULL &&
                    ledger_jobs_add_slot(ledger, job, former->nodes[i], &job->places[i].request) == 0)
                        job->places[i].slot = job->slots;
}

static struct trial_step *push_job(struct trial *trial, struct ledger_job *job)
{
        struct trial_step *step = push(trial);

        if (step != NULL) {
                step->job = job;
                job->references++; /* its slots come and go */
        }
        return step;
}

static void undo(struct trial *trial, struct trial_step *step)
{
        if (step->job != NULL) {
                if (step->job->place_count > 0)
                        put_plan_back(trial->ledger, step->job, &step->former);
                else
                        gang_put_back(trial->ledger, step->job, &step->former);
                gang_former_free(&step->former);
                ledger_jobs_release(trial->ledger, step->job);
        } else if (step->attached) {
                ledger_pods_detach(trial->ledger, step->pod);
                ledger_pods_wait(trial->ledger, step->pod);
        } else {
                ledger_pods_attach(trial->ledger, step->pod, step->node);
        }
}

void trial_undo(struct trial *trial, size_t mark)
{
        while (trial->count > mark)
                undo(trial, &trial->steps[--trial->count]);
}

void trial_end(struct trial *trial)
{
        if (trial->ledger == NULL)
                return;
        trial_undo(trial, 0);
        trial->ledger->generation = trial->generation;
        free(trial->steps);
        *trial = (struct trial){ 0 };
}

int trial_detach(struct trial *trial, struct ledger_pod *pod)
{
        struct trial_step *step = push(trial);

        if (step == NULL)
                return -ENOMEM;
        step->pod = pod;
        step->node = pod->node;
        ledger_pods_detach(trial->ledger, pod);
        return 0;
}

int trial_attach(struct trial *trial, struct ledger_pod *pod, struct ledger_node *node)
{
        struct trial_step *step = push(trial);

        if (step == NULL)
                return -ENOMEM;
        step->pod = pod;
        step->node = node;
        step->attached = true;
        ledger_pods_attach(trial->ledger, pod, node);
        return 0;
}

int trial_unlease(struct trial *trial, struct ledger_job *job)
{
        struct trial_step *step = push_job(trial, job);

        if (step == NULL)
                return -ENOMEM;
        return job->place_count == 0 ? gang_set_aside(trial->ledger, job, &step->former)
                                     : set_plan_aside(trial->ledger, job, &step->former);
}

int trial_lease(struct trial *trial, struct rules_context *context, struct ledger_job *job,
                const struct gang_demand *demand)
{
        struct trial_step *step = push_job(trial, job);
        int r;

        if (step == NULL)
                return -ENOMEM;
        r = gang_try(trial->ledger, context, job, demand, &step->former);
        if (r <= 0)
                trial_undo(trial, trial->count - 1);
        return r;
}
