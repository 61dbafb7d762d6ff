"""What a rented machine is told at its launch, whatever cloud it is of.

luggage.py    what it needs of the store before it can ask for anything itself
told.py       the script, as text or compressed; the files of a container
first.sh      of a machine: finds a Python, and sees to it that the machine ends
container.sh  of a container: finds a Python, ends when told to, and leaves word if it cannot begin
first.py      takes the kit, and becomes the bootstrap that lies in it; which machine this is, the
              cloud's own who.py says
inject.py     brings a Python into an image that has none
"""
