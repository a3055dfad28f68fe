/* Job order: which of the jobs that wait may start, in what order, and which never will. Pure data and its
 * rules; `remuda run` with several jobs and the controller ask the same function.
 *
 * Ready jobs are ordered by urgency (emergencies first), the value of their PriorityClass (larger first),
 * need (more chips first: a big job finds room more rarely, and small ones fill what it leaves), time of
 * creation (older first), then namespace and name, so that the order is total. Priority (larger first) goes
 * before need within one namespace alone: its jobs share out the places that they have in this order, and
 * nobody else's place changes. A job becomes ready when all its parents succeeded. Jobs that wait for each
 * other in a circle never will: each of them is refused by name. A job whose parent failed, or will never
 * start, is DependencyFailed, and so are its own children. O((jobs + dependencies) log jobs) time, O(jobs)
 * memory. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "job/spec/job.h"

enum job_order_state {
        JOB_ORDER_WAITING,   /* not started */
        JOB_ORDER_RUNNING,   /* started and not ended; also one that is repaired */
        JOB_ORDER_SUCCEEDED, /* the only end that lets children start */
        JOB_ORDER_FAILED     /* failed or cancelled */
};

enum job_order_verdict {
        JOB_ORDER_READY,             /* may start now */
        JOB_ORDER_PARENT_UNFINISHED, /* waits: `parent` waits or runs */
        JOB_ORDER_PARENT_UNKNOWN,    /* waits: nobody knows `parent` */
        JOB_ORDER_PARENT_FAILED,     /* never starts: `parent` failed or will never start */
        JOB_ORDER_CYCLE,             /* never starts: it depends on itself by way of `parent` */
        JOB_ORDER_NOT_WAITING        /* runs or has ended: nothing to decide */
};

struct job_order_entry {
        const char *namespace_, *name;            /* together unique; borrowed */
        const char (*depends_on)[JOB_NAME_BYTES]; /* names in the same namespace; borrowed */
        size_t dependency_count;
        int urgency;         /* enum job_urgency */
        int64_t class_value; /* of its PriorityClass; 0 = it has none */
        int64_t priority;
        uint64_t chips; /* workers' and servers' */
        uint64_t created_usec;
        enum job_order_state state;

        /* answers */
        enum job_order_verdict verdict;
        size_t parent; /* index into depends_on, for the four verdicts that name one */
};

/* job_order_entry_of() - an entry of a decoded job, which must outlive it; WAITING. */
struct job_order_entry job_order_entry_of(const struct job *job, uint64_t created_usec);

/* job_order() - judge all entries and sort them.
 * @ret_order: count indices: the ready jobs in the order in which they should be given chips, then all others
 *             in the same order among themselves
 * Return: the number of ready jobs; -ENOMEM; -EEXIST with *ret_order[0] the index of an entry whose name
 * another one has too. */
long job_order(struct job_order_entry *entries, size_t count, size_t *ret_order);

/* job_order_cycle() - the circle that an entry with the verdict JOB_ORDER_CYCLE is in, as "a -> b -> a" (each
 * depends on the next), appended to @sentence. A circle of more than 16 jobs is shortened with "...". */
void job_order_cycle(const struct job_order_entry *entries, size_t count, size_t index,
                     struct text *sentence);
