"""How each template is asked, three ways, and the shape of its answer."""

from typing import Any

QUESTIONS = {
    "newest_files": (
        'In the repository "{repo}", which files does the newest commit by "{author}" on main change? Sort them.',
        'Find the last commit that "{author}" made on main of "{repo}" and list the files it changes, sorted.',
        'List, sorted, the files touched by the most recent commit of "{author}" on main in "{repo}".',
    ),
    "branches_with": (
        'In "{repo}", which branches contain the newest commit that "{author}" made on main? Sort them.',
        'Take the last commit by "{author}" on main of "{repo}". Which branches, sorted, include it?',
        'Which branches of "{repo}", sorted, hold the most recent main commit of "{author}"?',
    ),
    "lines_added": (
        'In the repository "{repo}", how many lines do the commits by "{author}" on main add altogether?',
        'Add up the lines that "{author}" added on main of "{repo}", over every commit.',
        'What is the total number of added lines in all main commits of "{author}" in "{repo}"?',
    ),
    "branch_gap": (
        'In "{repo}", main and "{branch}" differ: how many lines are only on main, and how many only on the branch?',
        'Compare main with "{branch}" in the repository "{repo}": count the lines found on just one of the two.',
        'How many lines does main of "{repo}" have that "{branch}" lacks, and the other way round?',
    ),
    "count_two": (
        'How many commits has "{author}" on main in "{first}", and how many in "{second}"?',
        'Count the main commits by "{author}" in the repositories "{first}" and "{second}".',
        'In "{first}" and in "{second}", how often did "{author}" commit to main?',
    ),
    "longer_branch": (
        'In "{repo}", is the file "{path}" longer on "{one}" or on "{two}", and how many lines has it there?',
        'On which of the branches "{one}" and "{two}" of "{repo}" does "{path}" have more lines? How many?',
        'The file "{path}" of "{repo}" exists on "{one}" and "{two}". Name the branch with the longer version '
        "and its number of lines.",
    ),
    "top_author": (
        'Over main of "{first}" and "{second}" together, who made the most commits, and how many?',
        'Which author has the most main commits in the repositories "{first}" and "{second}" combined?',
        'Put the main commits of "{first}" and "{second}" together: which author made most of them?',
    ),
    "newest_of_three": (
        'Which of the repositories "{first}", "{second}" and "{third}" has the newest commit on main, and of '
        "which day?",
        'Among "{first}", "{second}" and "{third}", where was main last committed to, and on what date?',
        'Compare the last main commits of "{first}", "{second}" and "{third}": which is latest, and when?',
    ),
    "most_of_three": (
        'In which of "{first}", "{second}" and "{third}" has "{author}" the most main commits, and how many?',
        'Among the repositories "{first}", "{second}" and "{third}", where did "{author}" commit to main most '
        "often, and how often?",
        'Rank "{first}", "{second}" and "{third}" by main commits of "{author}": which leads, with how many?',
    ),
    "last_touch": (
        'Who last changed the file "{path}" on main of "{repo}", and on which day?',
        'Find the newest main commit in "{repo}" that changes "{path}": who made it, and when?',
        'In the repository "{repo}", who made the latest main commit to "{path}", and what is its date?',
    ),
    "longest_file": (
        'Which file in the folder "{folder}" of "{repo}" is the longest on branch "{branch}", and how long is it?',
        'On "{branch}" of "{repo}", find the file with the most lines in the folder "{folder}" and count them.',
        'Look into "{folder}" on branch "{branch}" of "{repo}": which file has the most lines, and how many?',
    ),
}

OUTPUT_FORMATS: dict[str, dict[str, Any]] = {
    "newest_files": {"files": ["folder/name"]},
    "branches_with": {"branches": ["name"]},
    "lines_added": {"added": 0},
    "branch_gap": {"only_main": 0, "only_branch": 0},
    "count_two": {"first": 0, "second": 0},
    "longer_branch": {"branch": "name", "lines": 0},
    "top_author": {"author": "name", "commits": 0},
    "newest_of_three": {"repository": "name", "date": "YYYY-MM-DD"},
    "most_of_three": {"repository": "name", "commits": 0},
    "last_touch": {"author": "name", "date": "YYYY-MM-DD"},
    "longest_file": {"file": "name without the folder", "lines": 0},
}
