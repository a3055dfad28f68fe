/* Stand-ins: the loop, the clocks, the HTTP server and the Lease of an extender, in memory and in virtual
 * time. They have the names of the real ones, and are linked in their place. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STAND_INS_REPLICAS 2

/* The virtual clocks, microseconds. The second may be stepped. */
extern uint64_t stand_ins_monotonic_usec, stand_ins_realtime_usec;
extern int stand_ins_opening; /* the replica that is being opened */
extern int stand_ins_leader;  /* who holds the Lease; -1 = nobody */

void stand_ins_run(void); /* timers that are due */

/* stand_ins_lead() - who holds the Lease from now on, -1 = nobody; those concerned are told. */
void stand_ins_lead(int replica);

/* A call of one of a replica's doors. */
struct stand_ins_call {
        char *reply; /* malloc'd; NULL = it is suspended, or has no body */
        unsigned status;
        void (*done)(void *userdata, unsigned status,
                     const char *reply); /* a suspended one is answered; may be NULL */
        void *userdata;
};

/* stand_ins_call() - true = it is suspended: the call lives until `done` was called, and is then freed with
 * its reply. Else the reply is the caller's. */
bool stand_ins_call(int replica, const char *path, const char *body, struct stand_ins_call *call);
