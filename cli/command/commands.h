/* Commands: one function a file; the rows are in command_table.c. As struct command's run() and below(). */
#pragma once

#include "cli/command/command.h"

int command_complete(int argc,
                     char **argv); /* in no row: asked by shells and kubectl; argv[1] ...: the words */
int command_completion(int argc, char **argv);
int command_devices(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_health(int argc, char **argv);
int command_jobs(int argc, char **argv);
int command_machine(int argc, char **argv);
int command_nodes(int argc, char **argv);
int command_plan(int argc, char **argv);
int command_run(int argc, char **argv);
int command_top(int argc, char **argv);
int command_tune(int argc, char **argv);
int command_simulate(int argc, char **argv);
int command_support_bundle(int argc, char **argv);
int command_ui(int argc, char **argv);
int command_uninstall(int argc, char **argv);
int command_whatif(int argc, char **argv);

bool command_plan_below(size_t i, struct command_below *ret);

/* What each takes, for who completes a command line. */
extern const struct option_program command_completion_options, command_devices_options,
        command_doctor_options, command_explain_options, command_health_options, command_jobs_options,
        command_machine_options, command_nodes_options, command_run_options, command_top_options,
        command_tune_options, command_simulate_options, command_support_bundle_options, command_ui_options,
        command_uninstall_options, command_whatif_options;
