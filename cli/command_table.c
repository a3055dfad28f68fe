/* The list of commands, in the order of `remuda --help`. */
#include "cli/command/command.h"

#include <stddef.h>

#include "cli/command/commands.h"

const struct command commands[] = {
        { "completion", "a script that completes command lines in bash, zsh or fish", command_completion,
          &command_completion_options, NULL },
        { "devices", "the accelerators and CPU groups of a machine", command_devices,
          &command_devices_options, NULL },
        { "doctor", "is everything on this node as it should be?", command_doctor, &command_doctor_options,
          NULL },
        { "explain", "why a pod waits or runs where it does, and what would help", command_explain,
          &command_explain_options, NULL },
        { "health", "the devices that are not well, and an operator's word about them", command_health,
          &command_health_options, NULL },
        { "jobs", "training jobs: list, show, logs, cancel, report", command_jobs, &command_jobs_options,
          NULL },
        { "machine", "record a machine as one text file, or expand a record", command_machine,
          &command_machine_options, NULL },
        { "nodes", "the cluster's nodes: class, pool, chips, what is free", command_nodes,
          &command_nodes_options, NULL },
        { "plan", "exact plans: shards, segments, splits, launch lines", command_plan, NULL,
          command_plan_below },
        { "run", "run a TrainingJob on this machine, from plan to summary", command_run, &command_run_options,
          NULL },
        { "top", "how busy the devices of this node are, live", command_top, &command_top_options, NULL },
        { "tune", "search the tile sizes of the trainer's kernels on this machine", command_tune,
          &command_tune_options, NULL },
        { "simulate", "replay a trace of pods through the extender's scoring", command_simulate,
          &command_simulate_options, NULL },
        { "support-bundle", "one archive of what the node and the cluster say, for a vendor or an issue",
          command_support_bundle, &command_support_bundle_options, NULL },
        { "ui", "the page of a cluster, live or saved, in a browser", command_ui, &command_ui_options, NULL },
        { "uninstall", "end the jobs, and take Remuda off a cluster", command_uninstall,
          &command_uninstall_options, NULL },
        { "whatif", "where pods would go on the cluster as it is or could be", command_whatif,
          &command_whatif_options, NULL },
        { NULL, NULL, NULL, NULL, NULL },
};
