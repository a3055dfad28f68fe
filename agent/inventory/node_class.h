/* Node class: for jobs of how many chips a node is. Pure. */
#pragma once

enum node_class { NODE_CLASS_ANY, NODE_CLASS_SINGLE, NODE_CLASS_MULTI, NODE_CLASS_COUNT };

extern const char *const node_class_names[];             /* by enum; ended by NULL */
const char *node_class_name(enum node_class node_class); /* "any", "single", "multi" */
