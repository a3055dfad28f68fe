/* Class split: how many of the nodes should take jobs of one chip, and how many those of more, so that jobs
 * wait least. By simulation of a history: arrivals, durations, chips.
 *
 * Each class has a queue of its own, first come first served, and a pod goes onto the node of its class where
 * least is left over; nodes of class `any` serve one queue of both. The smallest nodes become single first,
 * since nothing large fits there anyway. Tried are CLASS_SPLIT_GRID numbers of single nodes and, around the
 * best of them, every finer step. Pure but for the heap. Cost: O(tries x jobs x (nodes + log jobs)). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLASS_SPLIT_GRID 17

/* Which jobs a node takes; the values are those of enum node_class. */
enum class_split_class { CLASS_SPLIT_ANY, CLASS_SPLIT_SINGLE, CLASS_SPLIT_MULTI };

struct class_split_job {
        uint64_t arrival_sec, duration_sec;
        uint32_t milli; /* thousandths of chips that the pod takes */
        bool multi;     /* its whole job asks for more than one chip */
};

struct class_split_node {
        uint32_t chips;
        uint8_t node_class; /* enum class_split_class: as it is now */
};

struct class_split {
        size_t single;                     /* nodes of class single; the rest is multi */
        double wait_sec, present_wait_sec; /* mean over the jobs that can run: simulated; with the classes as
                                              they are */
        size_t jobs, impossible;           /* jobs that no node takes, whatever its class */
};

/* class_split_wait() - mean wait with these classes. @classes: one a node. Return: 0; -ENOMEM; -ERANGE when a
 * job that some node could take is refused by all of its class. */
int class_split_wait(const struct class_split_node *nodes, const uint8_t *classes, size_t node_count,
                     const struct class_split_job *jobs, size_t job_count, double *ret_sec,
                     size_t *ret_impossible);

/* class_split_find() - @nodes sorted by chips, smallest first; @jobs by arrival. Return: 0 or -ENOMEM. */
int class_split_find(const struct class_split_node *nodes, size_t node_count,
                     const struct class_split_job *jobs, size_t job_count, struct class_split *ret);
