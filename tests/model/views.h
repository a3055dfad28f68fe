/* Views: what each replica sees of the world, and what becomes of its writes, with the promises of a real API
 * server and its faults.
 *
 * store_open() of a replica opens a view. What happens is told to a view event by event, when it is asked to;
 * a write is decided when it comes and answered later, by chance also never done, done without an answer, or
 * done after its answer. */
#pragma once

#include <stdbool.h>

/* views_tell_pod() - the pod is told of to all views, as it is now; also that it is gone. */
void views_tell_pod(int pod);
void views_tell_node(int node);     /* the same for a node and its inventory */
bool view_deliver(int replica);     /* the next event. Return: was there one? */
void view_list_anew(int replica);   /* 410, or a watch that broke: all is listed */
bool view_answer(int replica);      /* a write. Return: was there one? */
void view_settle_late(int replica); /* writes that are on their way, are done or never will be */
bool views_are_quiet(void);         /* nothing is to be delivered or answered */
