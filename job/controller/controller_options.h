/* Controller options: what the extender gives its job controller. */
#pragma once

#include <stdbool.h>

#include "job/controller/job_pods.h"
#include "scheduler-extender/ledger/cluster.h"

struct controller_options {
        struct cluster *cluster;       /* outlives the controller */
        struct job_pods_options pods;  /* borrowed strings */
        unsigned keep_pods_sec;        /* ended pods of ended jobs stay so long, for their logs */
        bool (*leads)(void *userdata); /* may it write now? Asked before every write; NULL = always */
        bool takes_back; /* emergencies may be planned on chips that borrowers of the reserve hold */
        void (*log)(void *userdata, int priority, const char *event, const char *text); /* may be NULL */
        void *userdata;
};
