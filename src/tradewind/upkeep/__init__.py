"""Looking after what runs leave behind, and after what they stand on.

doctor.py    every check, whatever breaks
checks.py    of the store, the clocks and this computer
survey.py    who claims what: machines, marks and folders of runs
demos.py     homes of demos that were killed
sweep.py     ends what no run claims, removes what need not be kept
"""
