/* Process tree: every descendant of this process, found and signalled through /proc.
 *
 * With PR_SET_CHILD_SUBREAPER set, whatever a descendant forks, orphans or daemonises stays a descendant, so
 * that nothing can hide. Without /proc only direct children are seen. No allocation beyond one scan. */
#pragma once

#include <sys/types.h>

/* process_tree_adopt() - from now on orphans below this process become its children. 0 or negative errno. */
int process_tree_adopt(void);

/* process_tree_signal() - send a signal to every descendant that is not a zombie.
 * @except: a process that is left alone, with those below it that hang on it alone; 0 = none
 * Return: how many were signalled; negative errno if /proc cannot be read. */
int process_tree_signal(int signal_number, pid_t except);

/* process_tree_kill() - SIGKILL every descendant until none is left, reaping as they die. Returns when there
 * is no child any more, or after timeout_usec with a negative errno (a process stuck in the kernel).
 * @except: as above; it is not waited for either */
int process_tree_kill(unsigned timeout_usec, pid_t except);

/* process_tree_kill_marked() - SIGKILL every process, wherever it hangs in the tree, that was started with a
 * variable: "NAME=value", unique to those meant. This process is left alone. Those of other users, whose
 * variables cannot be read, are not seen. Return: how many; negative errno if /proc cannot be read. */
int process_tree_kill_marked(const char *variable);
