"""What transforms want to know of a graph before they change it; nothing here changes one."""
