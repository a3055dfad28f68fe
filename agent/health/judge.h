/* Judge: what discovery found in this scan, joined with what is remembered of every device, gives the
 * inventory that is published: the verdicts, the devices that left, and those that are kept out.
 *
 * Memory only; time is an argument. The judge owns a record per device id; a record lives until its device is
 * excluded, withdrawn by a new partition of the same function, or cleared after it left. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "agent/config/agent_config.h"
#include "agent/health/health.h"
#include "agent/inventory/inventory.h"

/* Error counters of a device as sysfs last showed them; all are "since boot". */
struct judge_counters {
        bool known;
        uint64_t aer_correctable, aer_nonfatal, aer_fatal;
        uint64_t ras_correctable, ras_uncorrectable;
};

struct judge_record {
        struct device device; /* as it was published last */
        struct health health;
        bool present, judged; /* judged: not excluded, assigned or duplicate */
        uint64_t scan;        /* of the last scan that found it */
        uint64_t transitions[HEALTH_COUNT];
        struct judge_counters counters;
        char driver_version[64]; /* "" = not known */
        struct finding event;    /* from the kernel log: fed once, with the next scan; GOOD = none */
        char last_error_space[16];
        uint64_t last_error_code, last_error_usec; /* CLOCK_REALTIME; 0 = none */
        uint64_t kernel_errors;                    /* lines of the kernel log about it */
};

struct judge {
        struct judge_record **records; /* sorted by device id */
        size_t record_count;
        uint64_t scan;
        bool recovering; /* a device is on its way back: look at it often */
};

struct judge_callbacks {
        /* Adds what other probes than discovery find; may be NULL. */
        void (*look)(void *userdata, struct judge_record *record, struct finding *finding);
        /* The published health has changed (also when the device is new); may be NULL. */
        void (*changed)(void *userdata, const struct judge_record *record, enum device_health before,
                        bool is_new);
        /* A new record: a chance to restore its health; may be NULL. */
        void (*created)(void *userdata, struct judge_record *record);
        void *userdata;
};

void judge_free(struct judge *judge); /* accepts NULL; leaves it zero */

/* judge_scan() - @inventory: what discovery_run() found; becomes what is published.
 * @previous: what was published before, for the groups of devices that left
 * @now_usec: CLOCK_BOOTTIME, @real_usec: CLOCK_REALTIME
 * Return: 0 or -ENOMEM, and then the inventory is of no use. */
int judge_scan(struct judge *judge, const struct agent_config *config, const struct inventory *previous,
               struct inventory *inventory, uint64_t now_usec, uint64_t real_usec,
               const struct judge_callbacks *callbacks);

/* judge_clear() - an operator's word about a device. Return: 0, or -ENOENT. The next scan publishes it. */
int judge_clear(struct judge *judge, const char *id);
