/* Commands: one function a file; the rows are in command_table.c. As struct command's run(). */
#pragma once

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
int command_uninstall(int argc, char **argv);
int command_whatif(int argc, char **argv);
