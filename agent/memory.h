/* Memory: what the agent knows of the time before it was started: the faults of every device and the numbers
 * that devices were given, kept in the state file of this machine (state_file.h) whenever they change. */
#pragma once

#include "agent/agent_options.h"
#include "agent/config/services.h"
#include "agent/health/judge.h"
#include "agent/state_file.h"

struct memory {
        char boot_id[40];        /* of this host, whatever the tree says: the state file's clock is its own */
        char path[1024];         /* "" = nothing is remembered */
        struct state_file state; /* as it was at the start; its numbers as they are now */
        uint64_t hash;           /* of what the file holds */
        bool own; /* the path was given, or is this machine's: a file may be made at any time */
        uint64_t retry_usec;
};

/* memory_open() - @live: the options' root is the machine that we run on. A file that is of no use is said in
 * the log. */
void memory_open(struct memory *memory, const struct agent_options *options, bool live, struct log *log);
void memory_close(struct memory *memory);

/* memory_is_of_this_boot() - was the state written since this host was started? */
bool memory_is_of_this_boot(const struct memory *memory);

/* memory_recall() - a record that is new goes on with the faults that a former agent knew of its device. */
void memory_recall(const struct memory *memory, struct judge_record *record);

/* memory_keep() - write the file if what it should hold has changed; one that cannot be written is an event
 * and tried again. */
void memory_keep(struct memory *memory, const struct services *services, const struct judge *judge,
                 uint64_t generation, uint64_t kernel_sequence);
