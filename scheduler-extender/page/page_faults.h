/* Page faults: what became of devices in the last hour: the timeline of the page. What an inventory says is
 * compared with what the same agent said before; of a device that is told for the first time, and is not
 * well, its own `since` says when. Pure but for the heap; times are CLOCK_REALTIME. */
#pragma once

#include "scheduler-extender/page/page_node.h"

#define PAGE_FAULTS_MAX  1000
#define PAGE_FAULTS_USEC (UINT64_C(3600) * 1000000)

struct page_faults_entry {
        uint64_t usec;
        const char *to; /* static: "sick", "degraded", "quarantined", "unknown", "gone", "recovered" */
        char *node, *device, *reason, *message; /* one block, which begins with node; device "": all there */
};

/* Zero-initialised. In the order in which they were noticed; the newest last. */
struct page_faults {
        struct page_faults_entry *ring[PAGE_FAULTS_MAX];
        size_t first, count;
        uint64_t total; /* since the start: has there been another? */
};

void page_faults_free(struct page_faults *faults);

/* page_faults_compare() - @before: NULL = nothing was told of the node. O(devices squared) of one node where
 * their order changed, else O(devices). */
void page_faults_compare(struct page_faults *faults, const char *node, const struct page_node_told *before,
                         const struct page_node_told *now, uint64_t now_usec);

/* page_faults_node() - all of a node: its agent is silent, or is heard again. */
void page_faults_node(struct page_faults *faults, const char *node, bool unknown, const char *reason,
                      uint64_t now_usec);

/* page_faults_expire() - those of more than an hour ago are forgotten. */
void page_faults_expire(struct page_faults *faults, uint64_t now_usec);

/* page_faults_at() - the i-th, oldest first. */
const struct page_faults_entry *page_faults_at(const struct page_faults *faults, size_t i);

/* page_faults_word() - what a device of this health is called; NULL = it is well. */
const char *page_faults_word(enum device_health health);
